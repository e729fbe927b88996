"""Cases: YAML files into :class:`~pytest_agenteval.cases.model.Case` values, and project files."""
