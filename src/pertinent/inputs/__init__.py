"""What a person can point at: the features of texts, images and table rows."""
