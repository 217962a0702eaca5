"""
Check that removal keeps inputs in distribution
===============================================

An explanation is only as good as the model's predictions for texts with words removed. Check them first.
"""

# sphinx_gallery_thumbnail_path = 'pictures/check.png'

import pertinent

model = pertinent.load("sentiment")
subjects = ["The plot", "The acting", "The first hour", "The ending", "The score", "The script"]
praise = ["is a quiet joy from start to finish", "holds you until the very last scene"]
blame = ["is a mess from start to finish", "is dull, slow and far too long"]
texts = [f"{subject} {opinion}." for subject in subjects for opinion in (*praise, *blame)]
labels = ["positive", "positive", "negative", "negative"] * len(subjects)
check = pertinent.check_removal(model, texts, labels, removals=["attention-mask", "pad-token", "mask-token"])
check.plot()

# %%
# The model was trained with words hidden from attention, so ``attention-mask`` preserves its accuracy.
# Padding tokens in the middle of a text are new to it, and its answers are worse although the same words
# are removed:

check

# %%
# Do explanations agree between seeds? If they do not, raise the budget.

pertinent.stability(model, texts, "shapley-sampling", samples=4).plot(
    pertinent.stability(model, texts, "shapley-sampling", samples=25)
)
