"""The code that computes scores: what belongs to it, and what of a change in it counts."""

from __future__ import annotations

import ast

import pytest

from benchmarks.house import WHEEL
from benchmarks.imports import imports_of, modules_of
from ragwitness.evidence.code import code_digests, code_of, module_of

WEIGHTS, REPLIES = "models/reader/weights/model.safetensors", "text/replies.toml"
MODULE = '''"""What it is."""

# A remark.
NAME = "a # b"  # another
"""What it holds."""


def f(x):
    """Return it."""
    text = """first

    # third"""; "a string"; y = 1
    return x, text, y
'''


def _code(text: str) -> str:
    return code_of(text, ast.parse(text))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# A remark.\n", ""),
        ("  # another", ""),
        ('"""What it is."""\n', ""),
        ("What it holds.", "What it\nholds."),
        ('    """Return it."""\n', ""),
        ("\n\n\ndef", "\ndef"),
    ],
)
def test_words_for_readers_do_not_count(before: str, after: str) -> None:
    assert MODULE.count(before) == 1
    assert _code(MODULE.replace(before, after)) == _code(MODULE)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a # b", "a # c"),
        ("first\n\n", "first\n"),
        ("# third", "# fourth"),
        ("y = 1", "y = 2"),
        ("return x, text", "return text, x"),
        ("x, text, y\n", "x, text\n"),
    ],
)
def test_whatever_computes_counts(before: str, after: str) -> None:
    assert MODULE.count(before) == 1
    assert _code(MODULE.replace(before, after)) != _code(MODULE)


@pytest.mark.parametrize(
    ("task", "own"),
    [
        ("audit", {"ragwitness.membership.methods.s2mia", WEIGHTS, REPLIES}),
        ("leak", {"ragwitness.leakage.attacks.single_turn"}),
        ("canary", {"ragwitness.canary.verdict", "ragwitness.canary.draw", REPLIES}),
    ],
)
def test_scores_follow_from_methods_and_weights_and_from_no_page(task: str, own: set) -> None:
    found = code_digests(task)
    assert own <= found.keys()
    rooms = {one.split(".")[1] for one in found if one.startswith("ragwitness.")}
    others = {"cli", "report", "web", "service", "targets", "evidence", "attest"}
    assert not rooms & others
    assert not [one for one in found if one.endswith((".css", ".j2", ".js", ".md"))]


@pytest.mark.parametrize("task", ["audit", "leak", "canary", "marks"])
def test_no_module_that_a_score_may_follow_from_is_left_out(task: str) -> None:
    """The oracle: every import from the task on, in functions and by strings too."""
    modules = modules_of(WHEEL)
    around = {"attest", "evidence", "report", "targets", "cli"}
    start = module_of(task)
    reached, waiting = {start}, [start]
    while waiting:
        tree = ast.parse(modules[waiting.pop()].read_text())
        for name in imports_of(tree, modules) - reached:
            if "." in name and name.split(".")[1] not in around:
                reached.add(name)
                waiting.append(name)
    found = {name.removesuffix(".__init__") for name in code_digests(task)}
    assert len(reached) > 25
    assert reached - found - {start} == set()
