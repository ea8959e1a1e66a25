"""integer_addition: its files, its table, and the counts behind them."""
