"""Runner, pages and data that all experiments share."""
