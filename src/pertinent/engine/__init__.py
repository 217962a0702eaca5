"""The engine runs many algorithms concurrently and combines their questions into full batches."""
