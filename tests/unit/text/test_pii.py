"""Personal details are found by form, by Presidio, and by any model; each says what it misses."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from ragwitness.core.errors import InputError, MissingExtraError, ModelError
from ragwitness.synthesis.guard import GuardConfig, SyntheticGuard
from ragwitness.text.pii import (
    MISSES_CONTACTS,
    MISSES_PRESIDIO,
    Personal,
    personal_of,
    pii_finder,
)

TEXT = "Ann Lee of Bath, ann@example.org, works at Acme since 3 May."


def test_contacts_are_found_without_a_model() -> None:
    finder = pii_finder("contacts")
    found = finder.find("a@b.org, (713) 853-1234 or www.x.org/p; 120/80 mmHg")
    assert [one.kind for one in found] == ["EMAIL", "PHONE", "URL"]
    assert "every name" in finder.misses
    assert pii_finder("none").find("a@b.org") == []


def test_the_page_says_what_a_finder_misses_and_the_docs_say_the_same() -> None:
    docs = (Path(__file__).parents[3] / "docs" / "synthesize.md").read_text(encoding="utf-8")
    for said in (MISSES_CONTACTS, MISSES_PRESIDIO):
        [share] = re.findall(r"\.\d\d \[\.\d\d, \.\d\d\]", said)
        assert share in docs
        # By kind: each row's figures add up to what is said.
        rows = re.findall(r"\| (\d+) \| (\d+) \| (\d+) (?=\|)", docs)
        found, of = (sum(int(row[at]) for row in rows) for at in (said is MISSES_PRESIDIO, 2))
        assert re.search(rf"of {of} made-up forms of {len(rows)} kinds it finds {found}\b", said)
    finder = pii_finder("contacts")
    guard = SyntheticGuard([], (), GuardConfig(pii="contacts"))
    assert guard.describe()["PII that it misses"] == finder.misses == MISSES_CONTACTS


@pytest.mark.parametrize("kind", ["somebody", "spacy", "spacy:", "contacts+", "hf"])
def test_an_unknown_finder_is_named_with_those_there_are(kind: str) -> None:
    with pytest.raises(InputError, match="pii must be"):
        pii_finder(kind)


def _module(monkeypatch: pytest.MonkeyPatch, name: str, **members: Any) -> None:
    monkeypatch.setitem(sys.modules, name, types.SimpleNamespace(**members))


def _at(text: str, said: str) -> tuple[int, int]:
    return text.index(said), text.index(said) + len(said)


def test_a_spacy_model_finds_names_and_leaves_organisations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = (("Ann Lee", "PERSON"), ("Bath", "GPE"), ("Acme", "ORG"), ("3", "CARDINAL"))

    def load(name: str) -> Any:
        assert name == "en_made_up"

        def pipeline(text: str) -> Any:
            ents = [
                types.SimpleNamespace(
                    start_char=_at(text, said)[0], end_char=_at(text, said)[1], label_=label
                )
                for said, label in told
                if said in text
            ]
            return types.SimpleNamespace(ents=ents)

        return pipeline

    _module(monkeypatch, "spacy", load=load)
    finder = pii_finder("contacts+spacy:en_made_up")
    assert finder.find(TEXT) == [
        Personal(*_at(TEXT, "Ann Lee"), "PERSON"),
        Personal(*_at(TEXT, "Bath"), "LOCATION"),
        Personal(*_at(TEXT, "ann@example.org"), "EMAIL"),
    ]
    ledger = personal_of([("r", TEXT), ("s", "nothing")], finder)
    assert [(one.text, one.kind, one.record) for one in ledger] == [
        ("Ann Lee", "person", "r"),
        ("Bath", "location", "r"),
        ("ann@example.org", "contact", "r"),
    ]


def test_a_token_classifier_reads_long_texts_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "word " * 500 + "Ann Lee " + "word " * 500
    longest = []

    def pipeline(task: str, model: str, aggregation_strategy: str) -> Any:
        assert (task, model, aggregation_strategy) == ("token-classification", "a/b", "simple")

        def tag(part: str) -> list[dict[str, Any]]:
            longest.append(len(part.split()))
            if "Ann Lee" not in part:
                return []
            start, end = _at(part, "Ann Lee")
            return [{"start": start, "end": end, "entity_group": "PER"}]

        return tag

    _module(monkeypatch, "transformers", pipeline=pipeline)
    assert pii_finder("hf:a/b").find(text) == [Personal(*_at(text, "Ann Lee"), "PERSON")]
    assert max(longest) <= 200
    assert pii_finder("hf:a/b").find("") == []


def test_what_is_missing_or_does_not_load_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> Any:
        raise OSError(f"no model {name}")

    _module(monkeypatch, "spacy", load=load)
    with pytest.raises(ModelError, match="cannot be loaded"):
        pii_finder("spacy:nowhere")
    for module, kind, error in (
        ("spacy", "spacy:x", MissingExtraError),
        ("transformers", "hf:x", MissingExtraError),
    ):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(error):
            pii_finder(kind)


@pytest.mark.long
def test_presidio_finds_more_and_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("presidio_analyzer")
    import socket

    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    finder = pii_finder("presidio")
    text = "john.smith@example.com, 536-22-1234, 4111 1111 1111 1111, +44 20 7946 0958, times.no"
    assert {one.kind for one in finder.find(text)} == {"EMAIL", "US_SSN", "CREDIT_CARD", "PHONE"}
    assert finder.find("500 mg for 10 days, 120/80, born 1999, take it 3.5 times.no problem") == []


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("信用卡4111111111111111已过期", "4111111111111111"),
        ("カード番号4111-1111-1111-1111です", "4111-1111-1111-1111"),
        ("IBAN은DE89370400440532013000입니다", "DE89370400440532013000"),
        (
            "\u0627\u0644\u0628\u0637\u0627\u0642\u06294111111111111111\u0647\u0646\u0627",
            "4111111111111111",
        ),
        ("ติดต่อ192.168.0.1ได้", "192.168.0.1"),
        ("इसका4111111111111111है", "4111111111111111"),
    ],
)
def test_presidio_finds_a_detail_that_letters_of_another_script_join(
    text: str, detail: str
) -> None:
    pytest.importorskip("presidio_analyzer")
    assert [text[one.start : one.end] for one in pii_finder("presidio").find(text)] == [detail]
