"""NUPA: its files, tables and pictures, and the counts behind them."""
