"""Every field of a pack's JSON is changed once, and the pack signed again by its own auditor.

The pack is one without a log of runs, so that nothing but the seal, the chain and the recomputation
stands in the way. What passes all the same is listed here, with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.run_files import REPORT, RESULT, SEAL
from ragwitness.evidence.pack import ANSWERS_FILE, ROWS, TEXTS, page_of
from ragwitness.evidence.verifier import verify_pack
from tests.unit.evidence.forger import Forger
from tests.unit.evidence.test_evidence_lies import _unlogged

pytestmark = pytest.mark.slow

PASSES = {
    f"{RESULT} summary.started": "no answer says when it came",
    f"{RESULT} summary.seconds": "nor how long it took",
    f"{RESULT} summary.spent.queries": "the target's count; not below the linked answers",
    f"{RESULT} summary.spent.prompt_tokens": "the target's count",
    f"{RESULT} summary.spent.completion_tokens": "the target's count",
    f"{ROWS} passing": "whether a failure may pass: no figure follows from it",
}


def _leaves(value: Any, place: tuple = ()) -> Iterator[tuple]:
    """Yield where each value stands, whatever it is."""
    yield place
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, (*place, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _leaves(inner, (*place, number))


def _pattern(place: tuple) -> str:
    return ".".join(str(word) for word in place if not isinstance(word, int))


def _changed(value: Any) -> Any:
    """Return another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return f"{value} indeed"
    if isinstance(value, list):
        return [*value, value[-1]] if value else [1]
    if isinstance(value, dict):
        return {**value, "more": 1}
    return 1


def _mutants(forger: Forger, name: str) -> Iterator[tuple[str, Forger]]:
    """Yield the pack with each kind of field of a file changed once, and which it was."""
    rows = name.endswith(".jsonl")
    whole: Any = forger.rows(name) if rows else json.loads(forger.files[name])
    seen = set()
    for place in _leaves(whole):
        pattern = _pattern(place)
        if pattern in seen or not place:
            continue
        seen.add(pattern)
        mutant = forger.copy()

        def change(value: Any, place: tuple = place) -> None:
            for word in place[:-1]:
                value = value[word]
            value[place[-1]] = _changed(value[place[-1]])

        mutant.edit(name, change)
        if name == RESULT:  # who changes a result writes its page anew
            with suppress(InputError):
                mutant.files[REPORT] = page_of(json.loads(mutant.files[RESULT])).encode()
        yield pattern, mutant


def _survivors(forger: Forger, name: str) -> set[str]:
    found = set()
    for pattern, mutant in _mutants(forger, name):
        if not verify_pack(mutant.packed()).failures:
            found.add(f"{name} {pattern}")
    return found


def test_no_field_of_the_commitments_can_be_changed(honest: Forger) -> None:
    _unlogged(honest)
    for name in (SEAL, TEXTS, ANSWERS_FILE):
        assert _survivors(honest, name) == set(), name


@pytest.mark.long
def test_no_field_of_what_was_found_can_be_changed_but_those_that_are_listed(
    honest: Forger,
) -> None:
    _unlogged(honest)
    found = _survivors(honest, ROWS) | _survivors(honest, RESULT)
    assert found == set(PASSES)


def test_no_field_of_the_list_can_be_changed(honest: Forger) -> None:
    for name, value in honest.manifest["chain"].items():
        mutant = honest.copy()
        mutant.manifest["chain"][name] = _changed(value)
        assert verify_pack(mutant.packed()).failures, name
