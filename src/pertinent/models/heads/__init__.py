"""What stands on a transformer's hidden states, one file per kind of head."""
