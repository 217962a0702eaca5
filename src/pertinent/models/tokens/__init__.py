"""Tokenization of texts and prompts for transformers, and batches of tokens."""
