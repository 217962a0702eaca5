"""
Find features that act together
===============================

A score for each word cannot show that "not" reverses "bad". Interactions can.
"""

# sphinx_gallery_thumbnail_path = 'pictures/interactions.png'

import pertinent

model = pertinent.load("sentiment")
text = "The first half drags, but the acting is superb and the ending is not bad at all."
explanation = pertinent.explain(model, text, method="shapley-interactions", budget=400)
explanation.plot_interactions(top=8)

# %%
# An arc joins two words that act together. "not" and "bad" each count against the film; together they
# are praise. Every pair has a standard error:

for pair in explanation.top_pairs(3):
    print(" × ".join(pair.features), f"{pair.value:+.2f} ± {pair.standard_error:.2f}")

# %%
# For a table, interactions are drawn as a heat map and a network:

diabetes = pertinent.load("diabetes")
patient = pertinent.explain(diabetes, diabetes.background.values[0], "shapley-interactions")
patient.plot_interactions("network", top=10)
