"""Agents: one module per way to reach one."""
