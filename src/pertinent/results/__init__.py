"""What the verbs return: explanations, evaluations and removal checks, and how they are saved and read."""
