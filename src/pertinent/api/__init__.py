"""The verbs: explain, compare, evaluate, check; the request they speak and the one runner behind them."""
