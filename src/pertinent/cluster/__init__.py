"""Requests on Ray: workers that hold a model, and blocks of inputs that stream to them."""
