"""Fine-tuning text classifiers, with features removed or not, and training learned explainers."""
