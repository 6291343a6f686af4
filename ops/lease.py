"""Which of several daemons works: the one that holds the lease.

Without a lease each works, which does no harm: a batch is deleted under the condition that made its points
victims, and two runs choose the same survivor. A file lock is for one machine; the kernel gives it up with the
process, also after kill -9. In a cluster it is a Lease object, as controllers use it.
"""

from __future__ import annotations

import fcntl
import os
import socket
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ops import logs
from ops.errors import OpsError, SettingsError
from ops.kubernetes import KubernetesLease, in_cluster
from ops.settings import LeaseSettings


class Lease(Protocol):
    """Something that one process at a time holds."""

    def hold(self) -> bool:
        """Take it or keep it, and say whether it is held now; called again and again."""

    def release(self) -> None:
        """Give it up, so that the next holder need not wait."""


class NoLease:
    """Every daemon works."""

    def hold(self) -> bool:
        """Always."""
        return True

    def release(self) -> None:
        """Nothing to give up."""


class FileLease:
    """An exclusive lock on a file; the file also says for people who holds it.

    Raises:
        SettingsError: the file cannot be made or locked, for a reason other than being held.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def hold(self) -> bool:
        """Lock the file if nobody has; a lock on a file that was since deleted or replaced is worth nothing."""
        if self._file is not None:
            if self._is_current(self._file):
                return True
            self.release()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise SettingsError(f"lease.path: cannot open {self._path}: {error.strerror}.") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        except OSError as error:
            os.close(file)
            raise SettingsError(f"lease.path: cannot lock {self._path}: {error.strerror}.") from None
        if not self._is_current(file):
            os.close(file)
            return False
        os.ftruncate(file, 0)
        os.write(file, f"{identity()}\n".encode())
        self._file = file
        return True

    def release(self) -> None:
        """Unlock; the file stays, since deleting it would race with the next holder."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _is_current(self, file: int) -> bool:
        try:
            there, ours = self._path.stat(), os.fstat(file)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)


def identity() -> str:
    """A name for this process that no other has: host, process id, and something random."""
    return f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"


def make(settings: LeaseSettings) -> Lease:
    """The lease that the settings name.

    Raises:
        SettingsError: it cannot work here, such as `kubernetes` outside a cluster.
    """
    if settings.kind == "file":
        return FileLease(settings.path)
    if settings.kind == "kubernetes":
        return KubernetesLease(
            in_cluster(settings.namespace), settings.name, identity(), duration=settings.duration.total_seconds()
        )
    return NoLease()


class Keeper:
    """Holds a lease from a thread of its own, and tells when it was won and lost.

    Args:
        lease: What to hold.
        every: Seconds between two tries.
        won: Called when it was not held and now is.
        lost: Called when it was held and no longer is; work under way has to end.
    """

    def __init__(self, lease: Lease, *, every: float, won: Callable[[], None], lost: Callable[[], None]) -> None:
        self._lease = lease
        self._every = every
        self._won = won
        self._lost = lost
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)
        self.held = False

    def start(self) -> None:
        """Try once, so that a lease that cannot work is known at start, then go on in the thread.

        Raises:
            OpsError: the lease cannot work.
        """
        self._set(self._lease.hold())
        self._thread.start()

    def stop(self) -> None:
        """Give the lease up. Call it when no work is under way."""
        self._end.set()
        self._thread.join()
        self._lease.release()
        self.held = False

    def _keep(self) -> None:
        while not self._end.wait(self._every):
            try:
                held = self._lease.hold()
            except OpsError as error:
                logs.get().error("lease", problem=str(error))
                held = False
            except Exception as error:  # the thread must live on, or a lost lease would never be noticed
                logs.get().error("lease", problem=f"unexpected {type(error).__name__}")
                held = False
            self._set(held)

    def _set(self, held: bool) -> None:
        if held == self.held:
            return
        self.held = held
        logs.get().info("lease", held=held)
        (self._won if held else self._lost)()
