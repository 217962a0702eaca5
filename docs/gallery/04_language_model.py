"""
Explain the answer of a language model
======================================

Find out which sentence of a prompt an answer comes from.
"""

# sphinx_gallery_thumbnail_path = 'pictures/answer.png'

import pertinent
from pertinent import Prompt

model = pertinent.load("recall")  # a small language model that answers questions about given facts
text = "Ann keeps the key. Bob keeps the map. Dora keeps the lamp. Who keeps the map? Answer:"
pertinent.explain(model, text)

# %%
# The model wrote "Bob". The question is held fixed, and the score of a sentence is its effect on
# the log-odds of that answer. Click a token of the answer to see what it depends on.
#
# Retrieved documents are passed as sources. The tokenizer has a chat template, so sources and question are
# sent as a chat message.

facts = ["Ann keeps the key.", "Bob keeps the map.", "Dora keeps the lamp."]
prompt = Prompt("Who keeps the map?", sources=facts)
explanation = pertinent.explain(model, prompt)
explanation

# %%
# Ask for a contrast: why "Bob" and not "Ann"?

contrast = pertinent.explain(model, Prompt(prompt.text, sources=facts, answer="Bob", rather_than="Ann"))
for source, score in contrast.top(3):
    print(f"{score:+6.2f}  {source}")

# %%
# With many sources, the default method still needs few evaluations, because the model's gradient tells it
# where to look first. The standard errors say whether it may have missed a source.

names = ["Ann", "Bob", "Cora", "Dora", "Emil", "Finn", "Gina", "Hugo", "Ida", "Jack", "Kim", "Lena"]
things = ["key", "map", "lamp", "book", "coin", "ring", "rope", "bell", "cup", "hat", "drum", "fan"]
many = [f"{name} keeps the {thing}." for name, thing in zip(names, things)]
question = Prompt("Who keeps the map?", sources=many)
found = pertinent.explain(model, question, budget=48)
found.plot(top=4)
