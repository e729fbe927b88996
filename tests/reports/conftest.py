from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "results"))

from result_runs import outputs, run_folder, stored

__all__ = ["outputs", "run_folder", "stored"]
