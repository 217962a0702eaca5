"""Fine-tuning text classifiers on whole inputs and on inputs with features removed."""

from pertinent.training.examples import ExampleError
from pertinent.training.run import Trained, train

__all__ = ["ExampleError", "Trained", "train"]
