"""The paper's numbers, as printed."""

from __future__ import annotations

YELP, MNLI = "Yelp-Polarity", "MNLI"
BESIDE = {"sst2": YELP, "imdb": YELP, "mnli": MNLI}
"""The set of the paper that each of ours is beside."""

# Tables 1 and 2: Spearman, top-5 and top-10 intersection, MSE, seconds.
STABILITY = {
    YELP: {
        "SVS-25": (0.84, 3.41, 7.02, 0.01, 183.72),
        "KS-25": (0.04, 0.43, 1.45, 0.00, 1.92),
        "KS-200": (0.16, 1.09, 2.47, 0.82, 3.47),
        "KS-2000": (0.37, 2.45, 4.38, 0.03, 33.40),
        "KS-8000": (0.63, 3.73, 6.93, 0.01, 123.29),
    },
    MNLI: {
        "SVS-25": (0.75, 3.54, 7.46, 0.02, 128.07),
        "KS-25": (0.06, 0.97, 3.41, 0.01, 0.33),
        "KS-200": (0.24, 1.79, 4.37, 0.07, 2.04),
        "KS-2000": (0.52, 3.19, 6.09, 0.03, 20.39),
        "KS-8000": (0.76, 4.08, 7.74, 0.01, 89.48),
    },
}
# Sec. 6.1: "within 50 milliseconds", and Sec. 4: the correlation of MSE and Spearman's on Yelp-Polarity.
AMORTIZED_SECONDS = 0.05
MSE_AND_SPEARMAN = -0.41

# Table 3: Spearman and MSE against SVS-25.
APPROXIMATION = {
    YELP: {
        "SVS-25": (0.84, 6.64e-3),
        "KS-25": (0.12, 4.34e-2),
        "KS-200": (0.24, 5.77e-2),
        "KS-2000": (0.51, 1.86e-2),
        "KS-8000": (0.70, 6.25e-3),
        "FastSHAP": (0.18, 7.91e-3),
        "amortized": (0.61, 4.46e-6),
    },
    MNLI: {
        "SVS-25": (0.75, 1.90e-2),
        "KS-25": (0.17, 9.95e-2),
        "KS-200": (0.35, 7.73e-2),
        "KS-2000": (0.60, 2.54e-2),
        "KS-8000": (0.74, 1.25e-2),
        "FastSHAP": (0.23, 1.90e-1),
        "amortized": (0.42, 9.59e-3),
    },
}

# Table 4: Spearman between trainings, by the share of the training texts in percent.
TRAINING = {
    YELP: {10: 0.40, 30: 0.65, 50: 0.71, 70: 0.72, 100: 0.76},
    MNLI: {10: 0.45, 30: 0.57, 50: 0.65, 70: 0.65, 100: 0.77},
}

# Table 5: Spearman against SVS-25, by the number of permutations.
SVS = {YELP: {2: 0.52, 3: 0.60, 5: 0.69, 25: 0.84}, MNLI: {2: 0.41, 3: 0.47, 5: 0.55, 25: 0.75}}
ADAPTED = {YELP: {2: 0.64, 3: 0.69, 5: 0.71}, MNLI: {2: 0.47, 3: 0.53, 5: 0.57}}

# Table 6: accuracy in percent on MRPC.
CALIBRATION = {
    "BOW": 67.3,
    "KS-2000": 67.4,
    "KS-2000, padded": 67.4,
    "KS-2000, captum": 67.4,
    "amortized": 68.0,
}

# Sec. 6.4: Spearman against SVS-25, from Yelp-Polarity to SST-2, and seconds.
TRANSFER = {"amortized": (0.50, 0.017), "KS-100": (0.46, 1.6), "KS-100, padded": (0.46, 1.6)}
