"""Metrics of explanations, one file for each family."""

from pertinent.metrics.base import Metric, metrics

__all__ = ["Metric", "metrics"]
