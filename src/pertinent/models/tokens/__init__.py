"""Texts and prompts as a transformer reads them: tokens and batches of tokens."""
