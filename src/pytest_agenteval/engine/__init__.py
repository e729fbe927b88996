"""Run cases: the steps of one case, and what they share in a run."""
