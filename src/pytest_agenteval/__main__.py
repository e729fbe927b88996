"""``python -m pytest_agenteval``: the same as the console script ``agenteval``."""

from pytest_agenteval.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
