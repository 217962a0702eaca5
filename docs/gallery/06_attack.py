"""
Find the features an attacker must change
=========================================

Explain by robustness: changing the important features is enough to change the prediction.
"""

# sphinx_gallery_thumbnail_path = 'pictures/attack.png'

from sklearn.datasets import load_digits

import pertinent

model = pertinent.load("digits")
digit = load_digits().images[3] / 16
attack = pertinent.attack_radius(model, digit, features="pixels")
print(attack)

# %%
# The radius is the size of the smallest change found that changes the prediction.
# ``greedy-as`` (Hsieh et al. 2021) orders the pixels by how much they contribute to it:

explanation = pertinent.explain(model, digit, "greedy-as", features="pixels", subsets=100, attack_steps=6)
explanation.plot()

# %%
# Two metrics measure any explanation in this way. With a good explanation, attacks on the irrelevant
# features need a large radius, and attacks on the relevant features a small one.

metrics = ["robustness-of-irrelevant", "robustness-of-relevant"]
comparison = pertinent.compare(
    model, [digit], ["greedy-as:subsets=100", "integrated-gradients", "random"], metrics, features="pixels"
)
comparison
