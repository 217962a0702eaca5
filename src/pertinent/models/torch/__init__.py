"""What it takes to run torch models: devices, batches of tokens, gradients, attention."""
