from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "results"))

from result_runs import closed_journals, outputs, run_folder, stored

__all__ = ["closed_journals", "outputs", "run_folder", "stored"]
