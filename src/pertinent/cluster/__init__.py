"""The same requests on Ray: workers that keep a model, and blocks of inputs that stream to them."""
