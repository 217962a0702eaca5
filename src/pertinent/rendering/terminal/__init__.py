"""Results in the terminal; user text is only put into rich's `Text`, which does not parse markup."""
