"""Ways to reach an agent: one module per kind, one table of schemes, one way to call them all.

``targets`` turns a target or what a fixture returned into a ``RunnableAgent``; ``calling`` asks it
within a deadline; ``concurrency`` overlaps calls; ``replay`` records and replays answers.
"""
