"""A PostgreSQL of our own for the tests: a fresh cluster on a loopback port, gone afterwards."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.servers import free_port

_PATIENCE = 60.0


def find_postgres() -> Path | None:
    """The folder of its programs, or None; Debian keeps them off the PATH."""
    found = [*Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    if not found and (path := shutil.which("postgres")):
        found = [Path(path)]
    return max(found, key=lambda path: path.parts, default=Path("/-/-")).parent if found else None


@dataclass
class Cluster:
    """A running server.

    Attributes:
        url: Of its database ``postgres``.
        port: On the loopback.
    """

    folder: Path
    programs: Path
    port: int
    process: subprocess.Popen[bytes] = field(init=False)

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start it and wait until it admits clients."""
        command = [
            str(self.programs / "postgres"), "-D", str(self.folder / "data"),
            "-p", str(self.port), "-c", "listen_addresses=127.0.0.1",
            "-c", f"unix_socket_directories={self.folder}", "-c", "max_connections=100",
        ]  # fmt: skip
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*_unprivileged(), *command],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self.folder,
                start_new_session=True,
            )
        ready = [str(self.programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        deadline = time.monotonic() + _PATIENCE
        while subprocess.run(ready, check=False).returncode:
            assert self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
            assert time.monotonic() < deadline, "PostgreSQL does not answer"
            time.sleep(0.1)

    def bound_files(self, size: int | None, *pids: int) -> None:
        """Let no file grow beyond ``size`` bytes; None: any.

        Args:
            size: Of a file.
            pids: Processes of the server; none: those that it starts from now on.
        """
        soft = "unlimited" if size is None else str(size)
        for pid in pids or (self.process.pid,):
            command = ["prlimit", "--pid", str(pid), f"--fsize={soft}:unlimited"]
            subprocess.run([*_unprivileged(), *command], check=True)

    def stop(self, *, crash: bool = False) -> None:
        """End it: in order but without waiting for clients, or as a power cut would."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGQUIT if crash else signal.SIGINT)
        self.process.wait(30)


@contextlib.contextmanager
def postgres(programs: Path) -> Iterator[Cluster]:
    """Run a fresh cluster until the block ends."""
    # Directly under /tmp: the path of a socket is short, and pytest's folders are root's alone.
    with tempfile.TemporaryDirectory(prefix="rw-pg-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        _hand_over(folder)
        subprocess.run(
            [
                *_unprivileged(), str(programs / "initdb"), "-D", str(folder / "data"),
                "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=folder,
        )  # fmt: skip
        cluster = Cluster(folder, programs, free_port())
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop()


def _unprivileged() -> list[str]:
    """What stands before a command: PostgreSQL refuses to run as root."""
    if os.geteuid():
        return []
    return ["setpriv", f"--reuid={_user()}", "--clear-groups"]


def _user() -> str:
    import pwd

    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _hand_over(folder: Path) -> None:
    if not os.geteuid():
        shutil.chown(folder, _user())
