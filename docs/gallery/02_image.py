"""
Explain an image classifier
===========================

See which pixels make a digit an eight.
"""

# sphinx_gallery_thumbnail_path = 'pictures/image.png'

from sklearn.datasets import load_digits

import pertinent

model = pertinent.load("digits")
digit = load_digits().images[8] / 16
explanation = pertinent.explain(model, digit, features="pixels", method="occlusion")
explanation.plot()

# %%
# The heat map is drawn over the image: orange pixels support the predicted class, blue ones oppose it.
#
# The same explanation in a notebook or a report:

explanation

# %%
# What would make it another digit? A method that scores all classes shows them with one colour scale.

by_class = pertinent.explain(model, digit, features="patches:2").by_class()
by_class.plot()

# %%
# Networks have gradients, which cost less than removing pixels one by one. ``grad-cam`` and
# ``expected-gradients`` need one to a few hundred passes. Compare methods on the same image:

methods = ["occlusion", "grad-cam", "expected-gradients", "shapley"]
comparison = pertinent.compare(model, [digit], methods, features="pixels", budget=400)
comparison.explanations.plot(opacity=0.6)
