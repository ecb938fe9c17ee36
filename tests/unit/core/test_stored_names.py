"""Names in stored keys stay when a class moves or is renamed."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from ragwitness.core.stored_names import stored_name, stored_text, unset
from ragwitness.core.types import Document
from ragwitness.membership.methods.rag_mia import RagMia, RagMiaConfig
from ragwitness.runner.score_store import audit_identity
from ragwitness.synthesis.agents import MakingConfig


class _Shade(enum.StrEnum):
    DARK = "dark"


@dataclass(frozen=True)
class _Inner:
    shade: _Shade = _Shade.DARK
    hidden: int = field(default=1, repr=False)


@dataclass(frozen=True)
class _Outer:
    inner: tuple[_Inner, ...] = (_Inner(),)
    names: dict[str, float] = field(default_factory=lambda: {"a": 0.5})
    path: Path = Path("x")
    more: tuple[str, ...] = ()
    none: None = None


@pytest.mark.parametrize(
    "value",
    [_Outer(), [_Inner(), 1], (1, 2), (1,), {}, frozenset({"a"}), frozenset(), _Shade.DARK, "it's",
     MakingConfig().domain, Document("d", "text", True)],
)  # fmt: skip
def test_what_never_moved_is_written_as_its_repr(value: object) -> None:
    assert stored_text(value) == repr(value)


def test_a_renamed_class_keeps_its_name_in_keys_and_a_subclass_has_its_own() -> None:
    kept = {"stored_name": "Before"}
    renamed = make_dataclass("After", [("n", int)], namespace=kept, frozen=True)
    assert stored_text((renamed(1),)) == "(Before(n=1),)"
    assert stored_name(type("Child", (renamed,), {})) == "Child"


def test_a_set_is_written_in_one_order() -> None:
    assert stored_text(frozenset("cab")) == "frozenset({'a', 'b', 'c'})"


class _Nobody:
    name = "nobody"


def test_an_audit_that_moves_keeps_its_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(__file__).parents[2] / "golden" / "stored" / "identities.json"
    monkeypatch.setattr("ragwitness.runner.score_store.version", lambda _name: "0.1.0")
    monkeypatch.setattr("ragwitness.runner.score_store.READING", "")  # as when it was stored
    before = json.loads(path.read_text(encoding="utf-8"))["rag-mia"]
    monkeypatch.setattr(RagMia, "__module__", "elsewhere")
    assert audit_identity(RagMia(_Nobody()), "nobody") == before  # type: ignore[arg-type]


def test_a_new_option_changes_no_identity_until_it_is_set() -> None:
    nobody = _Nobody()
    usual, given = (
        audit_identity(RagMia(nobody, RagMiaConfig(unreadable=what)), "p")  # type: ignore[arg-type]
        for what in ("unscorable", "no")
    )
    assert usual == audit_identity(RagMia(nobody), "p") != given  # type: ignore[arg-type]


def test_an_audit_of_another_package_is_known_by_its_module_and_name() -> None:
    class Own:
        config: ClassVar[None] = None

    class Child(RagMia):
        """Of another package: not the audit that it is made from."""

    before = audit_identity(Own(), "p")  # type: ignore[arg-type]
    Own.__module__ = "elsewhere"
    assert audit_identity(Own(), "p") != before  # type: ignore[arg-type]
    nobody = _Nobody()
    assert audit_identity(Child(nobody), "p") != audit_identity(RagMia(nobody), "p")  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Grown:
    later: ClassVar[tuple[str, ...]] = ("added",)

    old: int = 1
    added: int = 2


def test_an_option_that_came_later_enters_no_name_until_it_is_set() -> None:
    assert stored_text(_Grown(old=3)) == "_Grown(old=3)"
    assert stored_text(_Grown(added=4)) == "_Grown(old=1, added=4)"
    assert unset(_Grown()) == {"added"}
    assert unset(_Inner()) == unset(None) == frozenset()
