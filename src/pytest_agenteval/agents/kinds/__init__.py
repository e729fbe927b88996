"""Kinds of agents: one module per target scheme, each with ``build(target, context)``."""
