"""Statistics over attempts, differences between runs, and gates."""
