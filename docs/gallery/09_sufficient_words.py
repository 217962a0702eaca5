"""
Search for the words that are enough
====================================

Find the smallest set of words with which the model makes the same prediction (Hase et al. 2021).
"""

# sphinx_gallery_thumbnail_path = 'pictures/enough.png'

import pertinent

model = pertinent.load("sentiment")
text = "The plot is thin, the jokes are old, but the two leads are wonderful together."
explanation = pertinent.explain(model, text, "parallel-local-search", sparsity=[0.1, 0.2, 0.5])
for share in explanation.request.sparsities:
    kept = [word for word, keep in zip(explanation.features, explanation.mask(share)) if keep]
    print(f"{share:.0%}: {' '.join(kept)}")

# %%
# The underlined words are the smallest set. A search optimises one goal directly.
# ``objective="comprehensiveness"`` looks for the words that the prediction cannot do without:

pertinent.explain(model, text, "parallel-local-search", sparsity=0.2, objective="comprehensiveness")

# %%
# ``anchors`` looks for a rule instead: words that fix the prediction regardless of the other words.

rule = pertinent.explain(model, text, "anchors", budget=2000)
rule
