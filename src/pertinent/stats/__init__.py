"""Statistics of explanations: bootstrap intervals, paired tests, correlation and agreement of raters.

>>> import numpy as np
>>> a, b = np.array([0.9, 0.7, 0.8, 0.6]), np.array([0.5, 0.6, 0.4, 0.1])
>>> print(bootstrap(a))
0.750 [0.650, 0.850]
>>> print(paired_difference(a, b))
0.350 [0.175, 0.475] (p < 0.001)
"""

from pertinent.stats.agreement import Level, alpha_interval, krippendorff_alpha
from pertinent.stats.intervals import FEWEST, Difference, Interval, holm
from pertinent.stats.ranks import average_ranks, spearman
from pertinent.stats.resampling import bootstrap, nan_mean, paired_difference
from pertinent.stats.student import paired_t, student_factor

__all__ = [
    "FEWEST",
    "Difference",
    "Interval",
    "Level",
    "alpha_interval",
    "average_ranks",
    "bootstrap",
    "holm",
    "krippendorff_alpha",
    "nan_mean",
    "paired_difference",
    "paired_t",
    "spearman",
    "student_factor",
]
