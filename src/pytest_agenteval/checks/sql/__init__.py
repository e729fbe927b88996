"""Executed SQL as syntax trees: what was read, through what, under which conditions."""
