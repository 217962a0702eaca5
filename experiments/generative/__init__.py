"""Language model that answers from a context: which method finds the sentence with the answer."""
