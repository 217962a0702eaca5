"""Fine-tuning text classifiers, so that inputs with features removed are nothing new to them."""

from pertinent.training.examples import ExampleError
from pertinent.training.run import Trained, train

__all__ = ["ExampleError", "Trained", "train"]
