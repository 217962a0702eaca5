"""The results: explanations, evaluations and removal checks, and how they are saved and read."""
