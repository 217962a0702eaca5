"""
Explain a text classifier
=========================

Find out which words a sentiment model used, and how certain their scores are.
"""

# sphinx_gallery_thumbnail_path = 'pictures/text.png'

import pertinent

model = pertinent.load("sentiment")
review = "The first half drags, but the acting is superb and the ending is a quiet triumph."
explanation = pertinent.explain(model, review)
explanation

# %%
# Orange words support the predicted class, blue words oppose it. The numbers are Shapley values: they
# add up to the difference between the model's answer to this text and its answer to an empty one.
#
# This text has 18 features, and therefore 262,144 subsets. The model was evaluated on 1,000 of them, so
# every score has a standard error:

for feature, score in explanation.top(3):
    error = explanation.standard_errors[explanation.features.index(feature)]
    print(f"{feature:10} {score:+.3f} ± {error:.3f}")

# %%
# Long texts are easier to read sentence by sentence. ``features="sentences"`` removes whole sentences,
# and ``features="coarse-to-fine"`` starts with passages and then refines the important ones.

long_review = (
    "I expected little from a sequel. The jokes are stale. "
    "Then the second act begins, and the film finds its heart. I left the cinema smiling."
)
pertinent.explain(model, long_review, features="sentences")

# %%
# Use your own model instead: :func:`pertinent.wrap` takes a transformers pipeline, a ``(model,
# tokenizer)`` pair, a scikit-learn pipeline, or any function from a list of texts to rows of
# probabilities.


def contains_praise(texts):
    """Return the probability that a text praises something."""
    return [[0.1, 0.9] if "superb" in text or "triumph" in text else [0.8, 0.2] for text in texts]


own_model = pertinent.wrap(contains_praise, kind="text", classes=["no praise", "praise"])
pertinent.explain(own_model, review)
