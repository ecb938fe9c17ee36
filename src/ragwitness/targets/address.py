"""What a user calls a target, taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from ragwitness.core.errors import InputError
from ragwitness.targets.transport import Clock, TransportOptions

_FORM = re.compile(r"([A-Za-z][A-Za-z0-9_.-]*)[:/](.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Address:
    """A target's address and how it is to be reached; what a scheme's factory is given.

    Attributes:
        scheme: Before the first ``/`` or ``:``, in small letters.
        rest: What follows it.
        transport: Timeouts, retries, concurrency, name of the key's variable.
        clock: Time and chance; None for the real ones.
    """

    scheme: str
    rest: str
    transport: TransportOptions = field(default_factory=TransportOptions)
    clock: Clock | None = None

    def split(self, known: Iterable[str] = ()) -> tuple[str, dict[str, str]]:
        """Return what stands before a ``?``, and the options after it.

        Args:
            known: Names of the options that there are.

        Raises:
            InputError: An option is unknown or given twice.
        """
        path, _, options = self.rest.partition("?")
        # A plus is a plus: defense=prompt+mirabel.
        pairs = parse_qsl(options.replace("+", "%2B"), keep_blank_values=True)
        values, names = dict(pairs), tuple(known)
        if len(values) < len(pairs):
            raise InputError(f"An option of the {self.scheme} target is given twice.")
        if unknown := sorted(set(values) - set(names)):
            raise InputError(
                f"Unknown {self.scheme} option {unknown[0]!r}.",
                f"Use: {', '.join(sorted(names))}." if names else "It takes none.",
            )
        return path, values

    def without_key(self) -> None:
        """Refuse ``--key-env`` and ``--header`` where nothing is sent by them.

        Raises:
            InputError: The user named a variable.
        """
        if self.transport.key_env is not None or self.transport.headers:
            raise InputError(
                f"--key-env and --header do not apply to {self.scheme} targets.",
                "Leave it out; docs/targets.md says where each kind of target has its keys.",
            )


def parse_address(
    spec: str, transport: TransportOptions | None = None, clock: Clock | None = None
) -> Address | None:
    """Read ``SCHEME/REST`` or ``SCHEME:REST``; None where there is no scheme."""
    found = _FORM.fullmatch(spec.strip())
    if found is None:
        return None
    scheme, rest = found.groups()
    return Address(scheme.lower(), rest, transport or TransportOptions(), clock)
