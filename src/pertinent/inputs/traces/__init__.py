"""Traces of agents: what was said, retrieved, called and returned before an answer."""
