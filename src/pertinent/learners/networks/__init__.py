"""Networks that score the features of an input, one file per kind of input."""
