"""The predicate of a statement is what its page says, and the page's options exist."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from ragwitness.evidence.statement import PREDICATE, statement_of
from tests.cli.surface import verbs

ROOT = Path(__file__).parents[2]
_PAGE = (ROOT / "docs" / "predicate.md").read_text(encoding="utf-8")
PACKS = sorted((ROOT / "tests" / "golden" / "evidence").glob("*-v1.zip"))
[_SCHEMA] = re.findall(r"^```json\n(.*?)^```$", _PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("pack", PACKS, ids=lambda path: path.name)
def test_the_predicate_of_every_pack_follows_the_schema(pack: Path) -> None:
    schema = json.loads(_SCHEMA)
    Draft202012Validator.check_schema(schema)
    statement = statement_of(pack.read_bytes(), pack.name)
    assert statement["predicateType"] == PREDICATE
    assert f"`{PREDICATE}`" in _PAGE
    validator = Draft202012Validator(schema)
    assert list(validator.iter_errors(statement["predicate"])) == []
    # The schema refuses what it should.
    for name in statement["predicate"]:
        bent = {**statement["predicate"], name: None}
        assert list(validator.iter_errors(bent)), name
    assert list(validator.iter_errors({**statement["predicate"], "more": 1}))


def test_the_options_of_the_commands_exist() -> None:
    commands = re.findall(r"^ragwitness (.*)$", _PAGE, re.MULTILINE)
    commands += re.findall(r"`ragwitness (.*?)`", _PAGE)
    known = dict(verbs())
    assert len(commands) >= 3
    for line in commands:
        words = shlex.split(line)
        options = {option for param in known[words[0]].params for option in param.opts}
        assert {word for word in words if word.startswith("--")} <= options, line
