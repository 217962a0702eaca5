"""Networks of learned explainers, one file for each kind of input."""
