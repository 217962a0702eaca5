"""Results: explanations, evaluations and attacks, and their files."""
