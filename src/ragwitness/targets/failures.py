"""Says in one line why a target gave no answer, and what to do; never shows the key."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx2

from ragwitness.errors import (
    CapabilityError,
    InputError,
    RagwitnessError,
    TargetResponseError,
    TargetUnreachableError,
)
from ragwitness.kit.quotes import quote

# Which key a target gets: OpenAI's goes to OpenAI alone, any other host's is named by the user.
#
# The audited system may be the adversary; a key that lies in the environment is not for it.

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
    """Refuse what is not the name of an environment variable, without repeating it.

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


class Failures:
    """Words failures of one target; the hints are those of the OpenAI protocol.

    Args:
        url: Its base URL, for people.
        key: Its key, taken out of whatever the target says.
        secrets: Further values that are taken out.
    """

    address_hint = "Give the base URL of the OpenAI-compatible API, e.g. http://host:port/v1."
    missing_hint = "Name the model after '#', and check that the URL ends in /v1."
    html_guess = "; is /v1 missing from the URL?"

    def __init__(self, url: str, key: Key, secrets: Sequence[str] = ()) -> None:
        self._url = url
        self._key = key
        self.secrets = tuple(filter(None, (key.value, *secrets)))

    def quote(self, text: str) -> str:
        """Return a target's words on one line, shortened, without keys."""
        return quote(text, self.secrets)

    def unreachable(self, reason: str, attempts: int) -> TargetUnreachableError:
        """No usable connection after all attempts."""
        tries = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        return TargetUnreachableError(
            f"Cannot get an answer from {self._url} ({tries}): {self.quote(reason)}.",
            "Check that the server runs and that host and port are right.",
        )

    def certificate(self, reason: str) -> TargetUnreachableError:
        """TLS failed; asking again cannot help."""
        return TargetUnreachableError(
            f"No secure connection to {self._url}: {self.quote(reason)}.",
            "Check the address, or point SSL_CERT_FILE to the certificate authority it uses.",
        )

    def overloaded(self, status: int, body: bytes, attempts: int) -> TargetResponseError:
        """A status that did not go away; the server is there, so other queries may pass."""
        said = self._message(body)
        what = "limits the rate of requests" if status == 429 else "fails"
        tries = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        return TargetResponseError(
            f"{self._url} {what}: status {status} after {tries}{said}.",
            "Ask again later, or with fewer connections at a time.",
        )

    def asks_too_long(self, status: int, seconds: float) -> TargetResponseError:
        """A wait longer than our patience."""
        return TargetResponseError(
            f"{self._url} answered with status {status} and asks to wait {seconds:.0f} s.",
            "Issue the same command again after that time.",
        )

    def status(self, status: int, content_type: str, body: bytes) -> RagwitnessError:
        """A status that asking again cannot change."""
        said = self._message(body)
        # First: some refuse log-probabilities with 403.
        if "logprob" in said.lower():
            return CapabilityError(
                f"{self._url} refuses log-probabilities{said}.",
                "Run ragwitness doctor on it, or use an audit that needs text only.",
            )
        if status in (401, 403):
            return self._forbidden(status, said)
        if status == 404:
            if self._looks_like_html(content_type, body):
                return self.html()
            return TargetResponseError(
                f"{self._url} knows no such model or address (status 404){said}.", self.missing_hint
            )
        # Redirects are not followed: they may lead a key to another host.
        if 300 <= status < 400:
            return TargetResponseError(
                f"{self._url} answered with a redirect (status {status}).",
                "Give the address that it redirects to.",
            )
        if not said and self._looks_like_html(content_type, body):
            return self.html()
        return TargetResponseError(
            f"{self._url} refused the request with status {status}{said}.",
            "Check that the model answers chats; ragwitness doctor TARGET shows what it can do.",
        )

    def html(self) -> TargetResponseError:
        """A web page instead of JSON."""
        return TargetResponseError(
            f"{self._url} answered with HTML (a web page), not JSON{self.html_guess}",
            self.address_hint,
        )

    def not_json(self, content_type: str, body: bytes) -> TargetResponseError:
        """A body that cannot be read."""
        if self._looks_like_html(content_type, body):
            return self.html()
        # Quoted first, then cut: half a key would not be recognised.
        start = self.quote(body[:4096].decode("utf-8", "replace"))[:80]
        what = f"not JSON (it begins {start!r})" if start else "an empty reply, not JSON"
        return TargetResponseError(f"{self._url} answered with {what}.", self.address_hint)

    def too_large(self, limit: int) -> TargetResponseError:
        """A body beyond the limit."""
        return TargetResponseError(
            f"{self._url} answered with more than {limit // 2**20} MB; the rest was not read.",
            "Check that this is the API of a language model.",
        )

    def reported(self, body: dict[str, object]) -> TargetResponseError:
        """An error sent with status 200."""
        said = self._message(json.dumps(body, default=str).encode())
        return TargetResponseError(
            f"{self._url} answered with an error{said}.", "The target's own log may say more."
        )

    def message(self, body: bytes) -> str:
        """Return what an error's body says, or nothing."""
        try:
            parsed = json.loads(body)
        except (ValueError, RecursionError):
            return ""
        error = parsed.get("error", parsed) if isinstance(parsed, dict) else parsed
        if isinstance(error, dict):
            error = error.get("message") or error.get("detail") or ""
        return self.quote(error if isinstance(error, str) else json.dumps(error))

    def _message(self, body: bytes) -> str:
        said = self.message(body).rstrip(".")
        return f": {said}" if said else ""

    def _forbidden(self, status: int, said: str) -> TargetResponseError:
        variable = self._key.variable
        if variable is None:
            return TargetResponseError(
                f"{self._url} asks for a key, and none was sent (status {status}){said}.",
                "Name the environment variable that holds its key: --key-env NAME "
                "(OPENAI_API_KEY is sent to https://api.openai.com alone unless named).",
            )
        state = "was refused" if self._key.value else f"is missing: {variable} is not set"
        return TargetResponseError(
            f"{self._url} asks for a key, and it {state} (status {status}){said}.",
            f"Put the key into the environment variable {variable}, or name another: "
            "--key-env NAME.",
        )

    @staticmethod
    def _looks_like_html(content_type: str, body: bytes) -> bool:
        return "html" in content_type.lower() or body.lstrip()[:1] == b"<"
