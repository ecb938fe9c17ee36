"""The TOML file that describes a service, as its tables."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ragwitness.errors import InputError

__all__ = ["RequestTable", "ResponseTable", "ServiceTables", "read_tables"]

_Text = Annotated[str, Field(min_length=1)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class RequestTable(_Part):
    """``[request]`` or one ``[[step]]``."""

    url: _Text
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] | None = None
    headers: dict[str, str] = {}
    body: str | None = None
    keep: dict[str, _Text] = {}


class ResponseTable(_Part):
    """``[response]``: JSONPaths."""

    text: _Text
    contexts: _Text | None = None
    logprobs: _Text | None = None
    tokens: _Text | None = None
    token_logprobs: _Text | None = None


class ServiceTables(_Part):
    """The whole file."""

    step: tuple[RequestTable, ...] = ()
    request: RequestTable
    response: ResponseTable


def read_tables(path: str) -> ServiceTables:
    """Read the file.

    Raises:
        InputError: It is missing, no TOML, or a field is missing, unknown or of another type.
    """
    try:
        with Path(path).open("rb") as stream:
            return ServiceTables.model_validate(tomllib.load(stream))
    except OSError as error:
        raise InputError(
            f"{path or 'The description'} cannot be read: {error.strerror}.",
            "Write http/FILE.toml; docs/targets.md shows one.",
        ) from None
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{path}: {field}: {first['msg']}.", "See docs/targets.md.") from None
    except ValueError as error:
        raise InputError(f"{path} is no TOML: {error}.", "See docs/targets.md.") from None
