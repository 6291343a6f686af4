"""Where things lie in a checkout: `.local/` holds all that `make up` makes, and is ignored by git."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

STACK = "local"


@dataclass(frozen=True)
class Workplace:
    """A checkout and its folders."""

    root: Path

    @property
    def local(self) -> Path:
        """Everything made here."""
        return self.root / ".local"

    @property
    def endpoint(self) -> Path:
        """Data, log and process number of the laptop endpoint."""
        return self.local / "endpoint"

    @property
    def state(self) -> Path:
        """Pulumi's state: a local folder backend."""
        return self.local / "pulumi"

    @property
    def passphrase(self) -> Path:
        """The passphrase that encrypts secrets in the state, for its owner's eyes only."""
        return self.local / "passphrase"

    @property
    def configuration(self) -> Path:
        """The stack's configuration, which git ignores."""
        return self.root / f"Pulumi.{STACK}.yaml"

    def shown(self, path: Path) -> str:
        """A path as a person in the checkout would type it."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)

    def prepare(self) -> None:
        """Make the folders, the passphrase and the stack's configuration where they are not there yet."""
        self.state.mkdir(parents=True, exist_ok=True)
        if not self.configuration.exists():
            self.configuration.write_text((self.root / f"Pulumi.{STACK}.yaml.example").read_text())
        if not self.passphrase.exists():
            descriptor = os.open(self.passphrase, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as stream:
                stream.write(secrets.token_urlsafe(32))
            self._forget_old_salt()

    def _forget_old_salt(self) -> None:
        """Drop the salt of a passphrase that is gone, as long as no secret was encrypted with it."""
        lines = self.configuration.read_text().splitlines(keepends=True)
        if not any("secure:" in line for line in lines):
            self.configuration.write_text("".join(line for line in lines if not line.startswith("encryptionsalt:")))

    def pulumi_environment(self) -> dict[str, str]:
        """What the Pulumi CLI needs to know to use this checkout's state and passphrase."""
        return {
            "PULUMI_BACKEND_URL": f"file://{self.state}",
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(self.passphrase),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        }

    def write_environment(self, cli: Path) -> Path:
        """Write the same as a file to source, so that `pulumi` can be typed by hand."""
        file = self.local / "env"
        lines = [f"export {name}='{value}'" for name, value in self.pulumi_environment().items()]
        file.write_text(
            "\n".join(["unset PULUMI_CONFIG_PASSPHRASE", *lines, f"export PATH='{cli.parent}':\"$PATH\"", ""])
        )
        return file

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Let one run at a time work in this checkout."""
        self.local.mkdir(exist_ok=True)
        with (self.local / "lock").open("w") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print("    another run works in this checkout; waiting for it", flush=True)
                fcntl.flock(stream, fcntl.LOCK_EX)
            yield
