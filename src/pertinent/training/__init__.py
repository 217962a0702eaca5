"""Fine-tuning text classifiers, with features removed or not, and training learned explainers."""

from pertinent.training.fine_tuning import Trained, train
from pertinent.training.labelled_texts import ExampleError

__all__ = ["ExampleError", "Trained", "train"]
