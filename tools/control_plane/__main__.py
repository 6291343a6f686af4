"""`python -m tools.control_plane`: have every part of the control plane here, and print where each is."""

from __future__ import annotations

import sys

from tools.control_plane.provision import ensure
from tools.fetching import ToolError

if __name__ == "__main__":
    try:
        for name, place in ensure().programs.items():
            print(f"{name}: {place}")
    except ToolError as error:
        sys.exit(str(error))
