"""
Explain millions of inputs with a fitted explainer
==================================================

Fit a network once. After that, an explanation costs one forward pass.
"""

# sphinx_gallery_thumbnail_path = 'pictures/fitted.png'

import numpy as np

import pertinent

model = pertinent.load("table")
rows = model.background.values
train, test = rows[::2], rows[1::2]
fitted = pertinent.fit(model, train, epochs=40, progress=False)
explanations = pertinent.explain(model, test, fitted)
explanations[0]

# %%
# The network learned Shapley values from a few samples of each row. How far is it from the exact values?

exact = pertinent.explain(model, test, "shapley", budget=10_000)


def mean_squared_error(explanations):
    """Return the mean squared error of all scores."""
    return float(np.mean([(e.scores - x.scores) ** 2 for e, x in zip(explanations, exact)]))


print(f"one pass:                    {mean_squared_error(explanations):.1e}")

# %%
# Add a few permutations of the real model where accuracy matters. Both estimates are weighted by their
# errors:

refined = pertinent.explain(model, test, fitted, refine=4)
print(f"one pass and 4 permutations: {mean_squared_error(refined):.1e}")

# %%
# Other methods learn to *select* features: ``aim`` (Vo et al. 2023) for every class, ``magnex`` the few
# sufficient ones. The card of a fitted explainer records how often the model's decision is the same with the
# selected features only.

selector = pertinent.fit(model, train, "aim", k=4, epochs=30, progress=False)
card = selector.network.card
print(f"same decision with 4 selected columns: {card['dev_faithfulness']:.0%}")
print(f"same decision with 4 random columns:   {card['dev_random']:.0%}")
