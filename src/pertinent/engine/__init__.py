"""One engine runs many algorithms together and turns their questions into full batches."""
