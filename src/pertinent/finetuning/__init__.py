"""Fine-tuning of text classifiers, with or without removed features, and training of learned explainers."""
