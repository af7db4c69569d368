"""What the engine costs: `python -m benchmarks` prints a table of figures and budgets."""
