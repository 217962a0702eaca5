"""Learned explainers: `fit` trains a network that scores the features of an input in one pass."""

from pertinent.learned.base import LearnedExplainer, LearnsScores, learned

__all__ = ["LearnedExplainer", "LearnsScores", "learned"]
