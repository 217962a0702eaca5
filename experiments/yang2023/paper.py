"""The paper's numbers, as printed."""

from __future__ import annotations

from experiments.shared.published import read_published

PUBLISHED = read_published("yang2023")
YELP, MNLI = "Yelp-Polarity", "MNLI"
COUNTERPARTS = {"sst2": YELP, "imdb": YELP, "mnli": MNLI}
"""The data set of the paper that each of ours is compared with."""
AMORTIZED_SECONDS: float = PUBLISHED["amortized_seconds"]
MSE_AND_SPEARMAN: float = PUBLISHED["mse_and_spearman"]
STABILITY = PUBLISHED["stability"]
APPROXIMATION = PUBLISHED["approximation"]
TRAINING, SVS, ADAPTED = (PUBLISHED[name] for name in ("training", "svs", "adapted"))
CALIBRATION, TRANSFER = PUBLISHED["calibration"], PUBLISHED["transfer"]
