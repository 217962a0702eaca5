"""Results in the terminal; text of users goes only into rich's `Text`, so that it is no markup."""
