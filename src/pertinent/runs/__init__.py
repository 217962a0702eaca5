"""Runs: from requests and inputs to results, in this process or on a cluster."""
