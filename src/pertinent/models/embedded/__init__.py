"""Small models that come with the package."""
