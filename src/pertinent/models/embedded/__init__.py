"""Small models included in the package."""
