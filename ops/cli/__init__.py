"""The command line `comemory`: one module per command, and what they share.

`options` has the options that several commands take, `execute` runs a job (dry run, question, progress, exit code),
`output` prints. Exit codes: 0 done, 1 failed, 2 wrong usage or settings, 3 done in part, 4 something was found and
`--exit-code` asked to be told, 130 ended by a second Ctrl-C. `plan --exit-code` has terraform's: 0 no change, 2
changes, 1 error.
"""

from __future__ import annotations

import gc
import sys
import traceback
from pathlib import Path

from ops.errors import OpsError, SettingsError
from ops.signals import blocked


def main() -> None:
    """Run the command line; an error is one sentence on stderr, never a traceback."""
    try:
        # Imported here, since the library may be installed without what the command line needs. Some of it starts
        # threads (numpy's for linear algebra): with the signals blocked these never get one, which would end them,
        # and with them the process, in the middle of a batch.
        with blocked():
            from ops.cli.app import app  # noqa: PLC0415

        # What was imported stays. Without this the collector goes through all of it again and again while pages of
        # points are decoded, which then takes five times as long.
        gc.freeze()
        app(prog_name="comemory")
    except ModuleNotFoundError as error:
        _tell(f"the package {error.name} is not installed; the command line needs: pip install 'comemory[ops]'", 2)
    except SettingsError as error:
        _tell(str(error), 2)
    except OpsError as error:
        _tell(str(error), 1)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        _tell(f"Unexpected {type(error).__name__} at {where}; this is a defect of the program.", 1)


def _tell(sentence: str, code: int) -> None:
    sys.stderr.write(f"comemory: {sentence}\n")
    sys.exit(code)
