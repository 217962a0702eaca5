"""Fine-tuning text classifiers, with features removed or not, and training learned explainers."""

from pertinent.training.examples import ExampleError
from pertinent.training.run import Trained, train

__all__ = ["ExampleError", "Trained", "train"]
