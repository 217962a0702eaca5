"""
Tutorial
========

Explain a prediction of a small sentiment classifier, search for the few words that determine it, and
measure which explanation is better. The tutorial takes ten minutes on a laptop. Nothing is downloaded: the
classifier comes with the package.

Install
-------

.. code-block:: bash

    pip install 'pertinent[all]'

You need Python 3.11 or later. ``pip install pertinent`` is enough to explain. The extras add: ``tables``
data frames and saved explanations, ``plots`` figures, ``images`` image files and superpixels, ``train``
fitted explainers and fine-tuning, ``app`` the web page.

Explain one text
----------------
"""

# sphinx_gallery_thumbnail_path = 'pictures/explanation.png'

import pertinent

model = pertinent.load("sentiment")
text = "The plot is thin but the leads are wonderful"
explanation = pertinent.explain(model, text)
explanation

# %%
# The method ``shapley`` evaluated the model on variants of the text with words removed. It turned the
# answers into one score per word. A positive score (orange) supports the predicted class, a negative one
# (blue) opposes it.

for word, score in zip(explanation.features, explanation.scores):
    print(f"{word:10}{score:+.3f}")

# %%
# Shapley values sum to the difference between two predictions: the one for the whole text, and the one
# for a text with every word removed, which is the base value.

base = explanation.base_values[explanation.target]
print(
    f"base value {base:.2f} + scores {explanation.scores.sum():.2f} = {base + explanation.scores.sum():.2f}"
)
print(f"prediction {explanation.prediction.values[explanation.target]:.2f}")

# %%
# Nine words have 2⁹ = 512 subsets. That is within the budget of 1,000 evaluations, so all subsets were
# evaluated and the values are exact. Longer texts have more subsets than the budget
# allows. In that case, ``standard_errors`` tells how far off each score may be.

print(explanation.evaluations, "evaluations of at most", explanation.cost.budget)
print("largest standard error:", explanation.standard_errors.max())

# %%
# Take the most important words
# -----------------------------
#
# Often you want a set of words instead of a score for each. The **sparsity** is the share of features in
# the set.

mask = explanation.mask(0.2)
print([word for word, kept in zip(explanation.features, mask) if kept])

# %%
# A search looks for the set that works best *together*. By default it looks for sufficient words: with
# only these, the model should be as sure as with the whole text.

search = pertinent.explain(model, text, "parallel-local-search", sparsity=[0.2, 0.5])
print([word for word, kept in zip(search.features, search.mask(0.2)) if kept])

# %%
# It can also look for the words that the prediction needs most:

needed = pertinent.explain(
    model, text, "parallel-local-search", sparsity=[0.2, 0.5], objective="comprehensiveness"
)
print([word for word, kept in zip(needed.features, needed.mask(0.2)) if kept])

# %%
# The two sets differ. "but" adds little to "wonderful", but in the whole text it weakens "thin". Which
# words are enough and which words are needed are different questions.
#
# Explain several texts
# ---------------------
#
# Pass a list to get a list. The texts share batches, so this is faster than a loop. A text that cannot
# be explained does not stop the others; it is listed with a reason.

texts = [
    "A warm and honest film about growing old.",
    "The script is a mess from the start.",
    "Slow, but the last act is thrilling.",
    "I was bored from start to finish.",
    "Beautiful to look at, and empty.",
    "One of the best comedies this year.",
    "The effects are cheap, the story weak.",
    "A small film with a big heart.",
    "",
]
explanations = pertinent.explain(model, texts)
for e in explanations[:4]:
    print(f"{e.target_name:9} {e.top(1)[0][0]}")
print(explanations.failures[0])

# %%
# Judge the explanations
# ----------------------
#
# Do these words determine the decision? Two metrics ask the model:
#
# - **sufficiency**: how much of the target's probability is lost when *only* the chosen words are kept.
#   Lower is better.
# - **comprehensiveness**: how much is lost when the chosen words are *removed*. Higher is better.

pertinent.evaluate(model, explanations)

# %%
# The intervals are 95% bootstrap intervals over the eight texts.
#
# A number is hard to judge on its own. Compare methods, and always include ``random``: a method that is
# not better explains nothing.

methods = ["kernel-shap", "leave-one-out", "parallel-local-search", "random"]
comparison = pertinent.compare(model, texts[:8], methods)
comparison

# %%
# All methods explained the same texts, so compare them text by text. An interval that excludes zero is a
# difference:

difference = comparison.difference("parallel-local-search", "kernel-shap", "comprehensiveness")
print(f"{difference.mean:+.2f} [{difference.low:+.2f}, {difference.high:+.2f}]")

# %%
# Check the removal
# -----------------
#
# Everything so far depends on what the model predicts for texts with words removed. Does it still work
# on them? ``check_removal`` removes random words and measures how often the model is still right. Use a
# few hundred of your own texts with labels; here are 24.

subjects = ["The plot", "The acting", "The first hour", "The ending", "The score", "The script"]
praise = ["is a quiet joy from start to finish", "holds you until the very last scene"]
blame = ["is a mess from start to finish", "is dull, slow and far too long"]
reviews = [f"{subject} {opinion}." for subject in subjects for opinion in (*praise, *blame)]
labels = ["positive", "positive", "negative", "negative"] * 6
check = pertinent.check_removal(model, reviews, labels, removals=["attention-mask", "pad-token"])
check

# %%
# ``attention-mask`` hides words from the model's attention. It is the default, and this model was
# trained with it. The model has never seen padding tokens inside a text. Explanations that use them get
# a warning:

doubtful = pertinent.explain(model, text, removal="pad-token", check=check)
print(doubtful.warnings[0])

# %%
# Save and share
# --------------
#
# A Parquet file holds the inputs, scores, settings and seed. A report is one HTML page that needs no
# network.

explanations.save("explanations.parquet")
again = pertinent.read("explanations.parquet")
pertinent.save_report(comparison, "report.html", title="Eight reviews")

# %%
# For a run of hours, write ``explain(..., out="explanations.parquet")``. Explanations are saved as they
# are finished, and the same call resumes after a crash.
#
# The command line
# ----------------
#
# Every step has a command:
#
# .. code-block:: bash
#
#     pertinent explain "The plot is thin but the leads are wonderful"
#     pertinent explain --file reviews.txt --out explanations.parquet
#     pertinent evaluate explanations.parquet
#     pertinent compare --file reviews.txt --methods kernel-shap,leave-one-out,random --html report.html
#     pertinent check --model sentiment --file reviews.csv --label-column label
#     pertinent serve
#
# ``pertinent methods`` lists all methods, and ``pertinent explain --help`` all options.
