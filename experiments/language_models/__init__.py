"""The sentences of a prompt that a real language model answers from."""
