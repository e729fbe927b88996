"""Compare small tables in plain Python: quick to start, and the oracle of the array engine."""
