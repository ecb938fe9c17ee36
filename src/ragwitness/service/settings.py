"""Settings of a server, handed to its worker processes through the environment."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from ragwitness.errors import InputError

__all__ = ["ServiceSettings"]


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """What every worker of a server needs to know.

    Attributes:
        database: URL or file; see :func:`~ragwitness.service.store.open_store`.
        generator: ``reader``, ``hf:NAME_OR_FOLDER`` or ``URL#MODEL``.
        template: Prompt template by name, or its file.
        plain: Without noise and meters: the control of ``benchmarks/service.py``, which no
            command line can reach.
        attest: Folders of the audit windows in whose logs answers stand.
        key: File with the log's private key.
    """

    database: str
    generator: str = "reader"
    template: str = "plain"
    plain: bool = False
    attest: tuple[str, ...] = ()
    key: str = ""

    def to_json(self) -> str:
        """Return the settings as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ServiceSettings:
        """Return the settings that :meth:`to_json` wrote.

        Raises:
            InputError: The text is something else.
        """
        try:
            fields = json.loads(text)
            return cls(**(fields | {"attest": tuple(fields["attest"])}))
        except (ValueError, TypeError, KeyError):
            raise InputError("The settings of a worker cannot be read.") from None
