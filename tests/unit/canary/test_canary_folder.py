"""What a folder keeps count of, and what is refused when it was changed."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from ragwitness.canary.draw import Design, DrawSecret
from ragwitness.canary.examples import Example
from ragwitness.canary.folder import (
    CanaryPlan,
    check_traces,
    make_plan,
    read_plan,
    write_plan,
    write_traces,
)
from ragwitness.core.errors import InputError, VerificationError

SECRET = DrawSecret(bytes(range(32)), bytes(32))


def _examples(n: int) -> tuple[Example, ...]:
    return tuple(
        Example(f"e{i}", f"Text {i} begins. It goes on with nine words, {i}.", f"Q{i}?", "A, b")
        for i in range(n)
    )


def _plan() -> CanaryPlan:
    return make_plan(_examples(40), Design(candidates=8, held_out=4), SECRET)


def test_an_example_cannot_move_from_what_is_sent_to_what_is_probed(tmp_path: Path) -> None:
    plan = _plan()
    first, *rest = plan.pools["reward"]
    pools = {"reward": tuple(rest), "policy": plan.pools["policy"]}
    moved = dataclasses.replace(plan, held_out=(*plan.held_out, first), pools=pools)
    with pytest.raises(VerificationError) as found:
        moved.check()
    assert found.value.check == "draw.examples"


def test_what_was_written_to_be_sent_is_checked_against_the_draw(tmp_path: Path) -> None:
    plan = _plan()
    write_plan(tmp_path, plan)
    assert not check_traces(tmp_path, plan)
    path = write_traces(tmp_path, plan, plan.traces())
    assert check_traces(tmp_path, plan)
    sent = path.read_text()
    up = '"canary": "up", "otherwise": "down"'
    path.write_text(sent.replace(up, '"canary": "down", "otherwise": "up"', 1))
    with pytest.raises(VerificationError) as found:
        check_traces(tmp_path, plan)
    assert found.value.check == "draw.traces"


def test_a_folder_of_another_version_is_refused_by_name(tmp_path: Path) -> None:
    write_plan(tmp_path, _plan())
    path = tmp_path / "commitment.json"
    path.write_text(path.read_text().replace("/v4", "/v3"))
    with pytest.raises(InputError, match="no plan of this version"):
        read_plan(tmp_path)


@pytest.mark.parametrize(
    "changed",
    [
        "TEXT 3 BEGINS. It goes on with nine words, 3.",
        "Text 3 begins: it goes on, with nine words (3)",
    ],
)
def test_near_copies_are_one_document(changed: str) -> None:
    copy = Example("copy", changed, "q?")
    with pytest.raises(InputError, match="1 of 1 held-out examples"):
        make_plan(_examples(20), Design(), SECRET, held_out=(copy,))
    split = make_plan((*_examples(20), copy), Design(), SECRET)
    pools = [*split.pools.values(), split.held_out]
    assert sum({"e3", "copy"} <= {one.id for one in pool} for pool in pools) == 1
