"""The methods: one file each, over the generator protocol."""

from pertinent.explainers.base import Explainer, Finding, Task, Traits, explainers

__all__ = ["Explainer", "Finding", "Task", "Traits", "explainers"]
