"""Learned explainers: `fit` trains a network that scores an input's features in one forward pass."""

from pertinent.learners.base import LearnedExplainer, LearnerSpec, learned
from pertinent.learners.score_learner import ScoreLearner

__all__ = ["LearnedExplainer", "LearnerSpec", "ScoreLearner", "learned"]
