"""The fuzzer's modules import each other by bare names, also when pytest looks into them for doctests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
