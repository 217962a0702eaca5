"""The web page: explain in a browser, on this machine."""
