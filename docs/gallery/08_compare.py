"""
Compare methods
===============

Explain the same texts by several methods and measure which explanations are most faithful.
"""

# sphinx_gallery_thumbnail_path = 'pictures/compare.png'

import pertinent

model = pertinent.load("sentiment")
subjects = ["The plot", "The acting", "The first hour", "The ending", "The score", "The script"]
opinions = [
    "is a quiet joy from start to finish",
    "holds you until the very last scene",
    "is a mess from start to finish",
    "is dull, slow and far too long",
]
texts = [f"{subject} {opinion}." for subject in subjects for opinion in opinions]
methods = ["random", "leave-one-out", "lime:samples=100", "shapley", "integrated-gradients"]
comparison = pertinent.compare(model, texts, methods, budget=100)
comparison

# %%
# Sufficiency asks whether the chosen words alone keep the prediction (less is better). Comprehensiveness
# asks whether the prediction falls without them (more is better). Intervals are 95% bootstrap intervals
# over texts.

comparison.plot()

# %%
# All methods explained the same texts, so differences are paired and much more certain than the
# intervals suggest:

difference = comparison.difference("shapley", "leave-one-out", "comprehensiveness")
print(f"{difference.mean:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]")

# %%
# Quality costs evaluations. Which methods are worth theirs?

comparison.plot_pareto("comprehensiveness")
