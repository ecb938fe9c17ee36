"""Which name the address of a system gives it: ``docs/targets.md`` describes the addresses."""

from __future__ import annotations

import re

_LAB = ("lab", "hf", "gguf")
_OURS = (*_LAB, "http", "replay")
_OPENAI = "https://api.openai.com/v1"


def name_follows(address: str, name: str) -> bool | None:
    """Whether a system's name is the one that its address gives.

    Args:
        address: As it is sealed, in a form of ``docs/targets.md``.
        name: As the answers have it.

    Returns:
        None where the address leaves the name open: a variable or somebody's code gives it.
    """
    scheme, rest = re.split("[:/]", f"{address.strip().lower()}:", maxsplit=1)
    if scheme == "openai":
        address = f"{_OPENAI}#{address.partition('/')[2]}"
    if scheme == "openai" or rest.startswith("//"):
        # The same host and path, and the model where the address says one.
        model, answering = (text.partition("#")[2].partition("?")[0] for text in (address, name))
        return _base_of(address) == _base_of(name) and model in ("", answering)
    if name.startswith((f"{scheme}/", f"{scheme}:")):
        return True
    return scheme in _LAB and name.startswith("lab:") if scheme in _OURS else None


def _base_of(url: str) -> str:
    return re.sub(r"/*((/chat)?/completions)?/*([?#].*)?$", "", url.strip())
