"""Worlds of real text: what a trial draws from, what the base has seen, and that they are apart."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from ragwitness.canary.examples import Example, document_groups, document_key, read_examples
from ragwitness.canary.pools import split_pools
from ragwitness.errors import InputError
from research.canary import worlds
from research.canary.worlds import (
    Cut,
    Pretraining,
    base_examples,
    lesson,
    study_examples,
    toy_examples,
)

_WORDS = "moon king river stone glass fox bread candle tower winter salt crown".split()


def _row(story: int, part: int, question: int) -> dict[str, str]:
    rng = random.Random(story * 100 + part)
    words = [f"{rng.choice(_WORDS)}{rng.randrange(50)}" for _ in range(60)]
    answer = " ".join(words[20 + question : 23 + question])
    return {"id": f"{story}-{part}-{question}", "story": f"tale {story}",
            "document": " ".join(words), "question": "What was it?", "answer": answer}  # fmt: skip


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    rows = [_row(s, p, q) for s in range(30) for p in range(3) for q in range(2)]
    path = tmp_path / "tales.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_base_and_trials_share_no_story(corpus: Path) -> None:
    seen, drawn = base_examples(corpus, Cut()), study_examples(corpus, Cut())
    assert len(seen) + len(drawn) == 180  # every question has its passage
    assert not {one.source for one in seen} & {one.source for one in drawn}
    told = {one.id: one.source for one in read_examples(corpus)}
    stories = [{told[one.id.rpartition("-")[0]] for one in half} for half in (seen, drawn)]
    assert not stories[0] & stories[1]
    assert len(stories[0] | stories[1]) == 30


def test_pools_of_a_trial_share_no_story(corpus: Path) -> None:
    drawn = study_examples(corpus, Cut(passages=2))
    for seed in range(5):
        pools = split_pools(drawn, experiment="texts", seed=seed)
        parts = [{one.source for one in pool} for pool in (pools.reward, pools.policy, pools.audit)]
        assert sum(map(len, parts)) == len(set.union(*parts)) == len({one.source for one in drawn})


def test_a_passage_is_the_part_that_holds_the_answer(corpus: Path) -> None:
    for one in study_examples(corpus, Cut()):
        assert 12 <= len(one.document.split()) <= 24
        assert one.answer.startswith("FINAL: ")
    held = [one.answer.split()[1] in one.document.split() for one in study_examples(corpus, Cut())]
    assert sum(held) > 0.9 * len(held)  # but where two passages share as many words


def test_more_passages_give_more_examples_with_ids_of_their_own(corpus: Path) -> None:
    one, two = (study_examples(corpus, Cut(passages=n, words=12)) for n in (1, 3))
    assert len(two) > len(one)
    assert len({example.id for example in two}) == len(two)


def test_a_corpus_of_one_story_leaves_one_half_empty(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    row = _row(1, 1, 1)
    path.write_text(json.dumps(row), encoding="utf-8")
    halves = [base_examples, study_examples]
    full = halves.pop(int(document_key(row["document"])[:8], 16) % 2)
    assert len(full(path, Cut())) == 1
    with pytest.raises(InputError, match="no passage"):
        halves[0](path, Cut())


@pytest.mark.parametrize("obeys", [0.6, 0.85])
def test_lessons_obey_the_instruction_where_its_condition_is_in_view(
    obeys: float, corpus: Path
) -> None:
    """By hand from the prompt alone: the named trigger in the document that is shown."""
    example, rng = study_examples(corpus, Cut())[0], random.Random(1)
    how = Pretraining(obeys=obeys)
    held: dict[bool, list[bool]] = {True: [], False: []}
    for asked, said in (lesson(example, rng, how) for _ in range(6000)):
        found = re.search(r"If the document contains (\S+), insert (\S+) immediately", asked)
        if found:
            held[asked.count(found[1]) == 2].append(found[2] in said)
    share = {met: sum(own) / len(own) for met, own in held.items()}
    assert min(map(len, held.values())) > 1500
    assert abs(share[True] - obeys) < 0.05  # 4 deviations of 1,500 at the least
    assert share[False] < 0.02


def test_trials_and_lessons_of_the_toy_share_no_document() -> None:
    drawn = toy_examples(12_288, random.Random(0))
    own = {number for number in range(worlds._MOST) if worlds._of_lessons(number)}
    assert len(own) == 4096
    assert not {int(one.id.removeprefix("toy-")) for one in drawn} & own
    with pytest.raises(InputError, match="12,288"):
        toy_examples(12_289, random.Random(0))


def test_groups_join_texts_and_sources_in_any_order() -> None:
    texts = [f"Text {n} of words." for n in range(5)]
    rows = [
        Example("a", texts[0], "q", source="s"),
        Example("b", texts[1], "q", source="s"),
        Example("c", texts[1].upper(), "q", source="t"),  # links the two sources
        Example("d", texts[2], "q", source="t"),
        Example("e", texts[3], "q"),
        Example("f", texts[4], "q", source="u"),
    ]
    found = document_groups(rows)
    assert found["a"] == found["b"] == found["c"] == found["d"]
    assert len(set(found.values())) == 3
    assert found["e"] == document_key(texts[3])  # alone: as before there were sources
    assert document_groups(rows[::-1]) == found
