"""Experiments of the papers that the library implements, and the command line that runs them."""
