"""What a stranger's pack may name: methods of this package, and nothing that is loaded."""

from __future__ import annotations

import pytest

from ragwitness.evidence.verifier import NotCheckedError, PackCase, PackKnown


@pytest.mark.parametrize("named", ["s-rag:few", "mba:paper", "s2mia", "reader", "two words: a"])
def test_our_own_names_are_no_addresses(named: str) -> None:
    case = PackCase(pack=None, known=PackKnown())  # type: ignore[arg-type]
    case.load_nothing({"method": [named]})
    # The same beside an address: it is the address that is refused.
    with pytest.raises(NotCheckedError, match="hf:gpt2"):
        case.load_nothing({"method": [named], "proxy": "hf:gpt2"})


@pytest.mark.parametrize("named", ["s-rag:nothing", "hf:gpt2", "http://host", "lab:mine", "a.toml"])
def test_what_would_be_loaded_is_refused(named: str) -> None:
    case = PackCase(pack=None, known=PackKnown())  # type: ignore[arg-type]
    with pytest.raises(NotCheckedError, match="--models"):
        case.load_nothing({"method": [named]})
