"""Learned explainers: `fit` trains a network that scores the features of an input in one pass."""

from pertinent.learned.base import LearnedExplainer, LearnerSpec, learned
from pertinent.learned.scores import LearnsScores

__all__ = ["LearnedExplainer", "LearnerSpec", "LearnsScores", "learned"]
