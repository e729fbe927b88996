"""The order of the steps of one case."""
