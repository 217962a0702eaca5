"""Explanation methods, one per file: generators that yield questions and return findings."""

from pertinent.explainers.base import Explainer, Finding, Task, Traits, explainers

__all__ = ["Explainer", "Finding", "Task", "Traits", "explainers"]
