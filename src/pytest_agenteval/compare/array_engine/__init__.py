"""Compare tables of any size column by column, in NumPy arrays."""
