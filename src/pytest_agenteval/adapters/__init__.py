"""Adapters for agent frameworks: an agent of a framework's own object, an answer of its result.

Nothing here imports a framework before one of its agents is asked.
"""
