"""Methods, one file each: generators that ask questions and return findings."""

from pertinent.explainers.base import Explainer, Finding, Task, Traits, explainers

__all__ = ["Explainer", "Finding", "Task", "Traits", "explainers"]
