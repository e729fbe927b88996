"""dazense's governance files: read as they are, applied to what the agent really did."""
