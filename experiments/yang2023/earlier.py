"""Findings of an earlier run, as it printed them, where the later one has no results.

Each is a mean with the bounds of its 95% interval, by finding and set. The later run was of SST-2 and IMDB
alone. Of local adaption the earlier one had 100 texts of MNLI, and other permutations in each row.
"""

from __future__ import annotations

Printed = tuple[float, float, float]

EARLIER: dict[str, dict[str, Printed]] = {
    "KS-200 is unstable": {"mnli": (-0.18, -0.20, -0.16)},
    "even KS-2000 is hardly stable": {"mnli": (-0.30, -0.31, -0.29)},
    "(ours) KS-200 is less stable where padding plays and is ranked, too": {
        "sst2": (0.79, 0.76, 0.83),
        "mnli": (0.55, 0.49, 0.61),
        "imdb": (0.20, 0.16, 0.25),
    },
    "the longer a text, the less stable": {"mnli": (0.36, 0.34, 0.37)},
    "SVS-25 is more stable than KS-2000": {"mnli": (-0.07, -0.08, -0.06)},
    "amortized is better than KS-200": {"mnli": (-0.27, -0.30, -0.24)},
    "KS-2000 is better than amortized": {"mnli": (0.47, 0.43, 0.51)},
    "amortized is better than FastSHAP": {
        "sst2": (0.03, 0.02, 0.05),
        "mnli": (0.04, 0.03, 0.06),
        "imdb": (0.11, 0.08, 0.14),
    },
    "… with 5": {"mnli": (0.02, 0.01, 0.04)},
    "… and than the prediction": {"mnli": (0.29, 0.24, 0.35)},
    "(ours) precision weights are better than Alg. 1": {"mnli": (0.01, -0.01, 0.03)},
    "amortized is more faithful than KS-200": {"mnli": (0.05, 0.01, 0.09)},
    "SVS-25 is more faithful than amortized": {"mnli": (-0.01, -0.04, 0.03)},
    # The upper bound was printed as -0.00, with the verdict "no, the reverse".
    "calibration: amortized is better than KS-2000": {"mnli": (-0.03, -0.05, -0.001)},
    "(ours) `shapley` with 200 evaluations is nearer to the reference than amortized": {
        "mnli": (0.41, 0.38, 0.44)
    },
    "(ours) `shapley` with 500 evaluations is nearer to the reference than SVS-25": {
        "sst2": (0.03, 0.02, 0.03),
        "mnli": (0.01, 0.01, 0.02),
        "imdb": (-0.13, -0.15, -0.12),
    },
}
