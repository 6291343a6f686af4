"""What `pulumi up` runs; Pulumi starts it as a file, so the checkout has to be put on the path."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from infra.program import program

program()
