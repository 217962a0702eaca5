"""The methods that `fit` knows: networks and loss, one file each."""
