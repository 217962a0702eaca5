"""Networks of learned explainers, one file per kind of input."""
