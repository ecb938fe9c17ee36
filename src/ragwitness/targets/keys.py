"""Which key a target gets: OpenAI's goes to OpenAI alone, any other host's is named by the user.

The audited system may be the adversary; a key that lies in the environment is not for it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

import httpx2

from ragwitness.errors import InputError

__all__ = ["Key", "check_name", "find_key"]

_DEFAULT_VARIABLE = "OPENAI_API_KEY"
_DEFAULT_HOST = "api.openai.com"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Some keys could be names as well (hf_..., gsk_...): long, of small letters and digits.
_KEY_LIKE = re.compile(r"(?=.*[a-z])(?=.*[0-9]).{20,}")


@dataclass(frozen=True, slots=True)
class Key:
    """A key and where it comes from.

    Attributes:
        variable: The environment variable it is read from; None where none is meant for
            this target.
        value: The key; None where there is none to send.
    """

    variable: str | None = None
    value: str | None = field(default=None, repr=False)


def check_name(variable: str) -> None:
    """Refuse what is no name of an environment variable, without repeating it.

    Raises:
        InputError: It is probably the key itself.
    """
    if not _NAME.fullmatch(variable) or _KEY_LIKE.fullmatch(variable):
        raise InputError(
            "--key-env takes the NAME of an environment variable, not the key itself.",
            "Put the key into a variable, e.g. MY_KEY, and give --key-env MY_KEY.",
        )


def find_key(url: str, variable: str | None) -> Key:
    """Return the key for the target at ``url``.

    Args:
        url: Its base URL.
        variable: The environment variable the user named; None takes ``OPENAI_API_KEY`` for
            ``https://api.openai.com`` and no key for any other host, the loopback included.

    Raises:
        InputError: The variable holds characters that no header can carry.
    """
    if variable is None:
        # Parsed by what connects, so that both see the same host.
        parsed = httpx2.URL(url)
        if (parsed.scheme, parsed.host) != ("https", _DEFAULT_HOST):
            return Key()
        variable = _DEFAULT_VARIABLE
    value = os.environ.get(variable, "").strip()
    if not (value.isascii() and (value + "x").isprintable()):
        raise InputError(
            f"The environment variable {variable} holds characters that no key has.",
            "Set it again, without line breaks or letters beyond ASCII.",
        )
    return Key(variable, value or None)
