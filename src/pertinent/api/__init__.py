"""The verbs: explain, compare, evaluate, attack; the request they speak and the run they build."""
