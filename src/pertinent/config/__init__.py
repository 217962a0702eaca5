"""Settings: their types, parsing, serialization, fingerprints and registries."""
