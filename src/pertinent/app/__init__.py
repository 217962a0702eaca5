"""Web apps: explanations and human studies in a browser."""
