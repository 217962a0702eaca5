"""Metrics of explanations, one file per family."""

from pertinent.metrics.base import Metric, metrics

__all__ = ["Metric", "metrics"]
