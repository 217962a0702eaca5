"""Questions about a model or a method over many inputs: removal check, stability, sanity, sensitivity."""
