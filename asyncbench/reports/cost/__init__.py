"""Cost: what calls cost, by model and cell, what the rest may cost, and what a right answer costs."""
