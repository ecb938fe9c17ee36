"""Everything this package raises on purpose, and the codes its commands exit with.

Each error says what happened, why, and what to do next; the command line prints
``message`` and ``hint`` in two lines and exits with ``exit_code``.

::

    RagwitnessError                1  anything below
    ├── InputError                 2  a file, row or option the user gave is unusable
    │   └── MissingExtraError      2  an optional dependency is not installed
    ├── TargetError                1  the system under audit did not answer usefully
    │   ├── TargetUnreachableError 1  no connection, or none that lasted
    │   └── TargetResponseError    1  it answered, but not in the protocol
    ├── CapabilityError            5  the target lacks what the audit requires
    ├── CapReachedError            1  a query could pass a cap of the user's; it was not sent
    ├── VerificationError          3  evidence was checked and does not hold
    ├── UnlistedError              1  what a stranger's file names is not loaded for it
    └── ModelError                 1  a local model or embedder cannot be loaded
"""

from __future__ import annotations

import enum
import importlib
from typing import Any


class ExitCode(enum.IntEnum):
    """How every command ends; scripts rely on these numbers."""

    PASS = 0
    """Done; with ``--fail-on``: no condition is met, and something was decided."""
    ERROR = 1
    """The target, or something inside, failed."""
    USAGE = 2
    """An option, a file or the installation is unusable."""
    FAILED = 3
    """A condition of ``--fail-on`` is met."""
    INCONCLUSIVE = 4
    """No condition of ``--fail-on`` is met, but nothing was decided either."""
    CAPABILITY = 5
    """The target lacks a capability that the audit requires."""
    INTERRUPTED = 130
    """Stopped by the user; answers are kept, and the same command resumes."""


class RagwitnessError(Exception):
    """Base class.

    Args:
        message: The event and its cause, in one line.
        hint: The next step, in one line; may be empty.
    """

    exit_code: int = ExitCode.ERROR

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class InputError(RagwitnessError):
    """A file, a row or an option given by the user cannot be used."""

    exit_code = ExitCode.USAGE


class MissingExtraError(InputError):
    """An optional dependency is not installed.

    Args:
        feature: The feature that needs it, e.g. ``"the MiniLM embedder"``.
        extra: The extra that brings it, e.g. ``"hf"``.
    """

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs packages that are not installed.",
            f"Install them with: pip install 'ragwitness[{extra}]'",
        )
        self.feature, self.extra = feature, extra

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        """Travel between processes: what it was made from, not its message."""
        return type(self), (self.feature, self.extra)


def import_extra(module: str, feature: str, extra: str) -> Any:
    """Import a module of a package that may not be installed.

    Raises:
        MissingExtraError: It is not; the message has ``feature`` and ``extra``.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(feature, extra) from error


class TargetError(RagwitnessError):
    """The system under audit did not give a usable answer."""


class TargetUnreachableError(TargetError):
    """No connection to the target, or it closed or timed out after all retries."""


class TargetResponseError(TargetError):
    """The target answered, but not with what its protocol promises, or kept failing."""


class CapReachedError(RagwitnessError):
    """A query could pass a cap on queries, tokens or money; it was not sent."""


class CapabilityError(RagwitnessError):
    """The target lacks a capability that the audit requires."""

    exit_code = ExitCode.CAPABILITY


class ModelError(RagwitnessError):
    """A local language model or embedder cannot be loaded or used."""


class UnlistedError(RagwitnessError):
    """Something was to be loaded by a name that is not on the list of what may be."""


class VerificationError(RagwitnessError):
    """Evidence was checked and does not hold, or is not in the one form that it must have.

    Args:
        check: Name of the check that failed, for programs, e.g. ``"log.inclusion"``.
        message: The claim that does not hold and its cause, in one line.
        hint: The next step, in one line; may be empty.
    """

    exit_code = ExitCode.FAILED

    def __init__(self, check: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.check = check

    def __reduce__(self) -> tuple[type[VerificationError], tuple[str, str, str]]:
        """Travel between processes: what it was made from, not its message."""
        return type(self), (self.check, self.message, self.hint)


def require(holds: bool, check: str, message: str, hint: str = "") -> None:
    """Refuse evidence unless a condition holds.

    Raises:
        VerificationError: ``check``; it does not hold.
    """
    if not holds:
        raise VerificationError(check, message, hint)
