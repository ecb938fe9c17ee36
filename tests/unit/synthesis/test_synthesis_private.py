"""Private evolution over HTTP: no record is shown, nothing is asked or drawn twice, caps hold."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import partial
from pathlib import Path
from zlib import crc32

import pytest

from ragwitness.core.errors import CapReachedError, InputError, TargetResponseError
from ragwitness.core.run_files import VOTES
from ragwitness.core.types import Document
from ragwitness.runner.budget import Budget
from ragwitness.synthesis.agents import Domain, MakingConfig
from ragwitness.synthesis.private.evolution import Candidates, PrivateConfig, load_embedding
from ragwitness.synthesis.run import SynthesisResult, write_made
from ragwitness.text.sample import load_sample
from tests.support.synthesis import NAMES, corpus, make
from tests.support.writers import Said, blocks, writers

PUBLIC = tuple(document.text for document in load_sample()[20:60])
DOMAIN = MakingConfig(domain=Domain("notes", records="a note", form="one note"))


def script(kind: str, prompt: str) -> Said | str:
    """A model that keeps some words of what it is shown, and its own of the question."""
    if "different matters" in prompt:
        return "\n".join(f"- {document.text[:60]}" for document in load_sample()[20:60])
    words = blocks(prompt)[0].split()[:9] if blocks(prompt) else prompt.split()[:12]
    return f"Once more of {' '.join(words)} with {crc32(prompt.encode()) % 997} others."


def evolve(
    url: str,
    documents: list[Document],
    run: Path | None,
    public: tuple[str, ...] = PUBLIC,
    budget: Budget | None = None,
    **settings: float,
) -> SynthesisResult:
    private = PrivateConfig(**{"epsilon": 8.0, "texts": 5, "rounds": 3, "floor": 0.0, **settings})
    known = partial(load_embedding, "words", public or PUBLIC)
    candidates = Candidates(public, "public words", known, "m")
    return make(
        url,
        documents,
        run,
        method="private-evolution",
        config=DOMAIN,
        budget=budget,
        private=(private, candidates),
    )


@pytest.mark.parametrize("public", [PUBLIC, ()], ids=["public", "drafts"])
def test_the_model_sees_no_record_and_a_second_start_asks_nothing(
    public: tuple[str, ...], tmp_path: Path
) -> None:
    documents = corpus(12)
    with writers(script) as server:
        first = evolve(server.url, documents, tmp_path / "run", public)
        asked = [prompt for prompt, _ in server.prompts]
        again = evolve(server.url, documents, tmp_path / "run", public)
        assert len(server.prompts) == len(asked)
    assert first.made == again.made
    assert again.report.queries == 0
    assert not any(name in prompt for name in NAMES for prompt in asked)
    assert not any(d.text[:40] in prompt for d in documents for prompt in asked)
    passed = [one for one in first.made if one.text]
    assert [one.record for one in passed] == [f"text-{n + 1}" for n in range(len(passed))]
    # Of drafts the noise once left two.
    assert first.report.counts["passed"] >= (3 if public else 2)
    assert sum(one.record.startswith("text-") for one in first.made) == 5
    assert len(asked) <= 20 * 3 + 1
    out = tmp_path / "safe.jsonl"
    assert write_made(out, first) == len(passed)
    text = out.read_text()
    assert not any(d.id + '"' in text for d in documents)
    assert "for one record added or removed" in first.report.settings["privacy"]


def test_a_cap_ends_it_and_a_higher_one_goes_on(tmp_path: Path) -> None:
    documents = corpus(12)
    with writers(script) as server:
        with pytest.raises(CapReachedError):
            evolve(server.url, documents, tmp_path / "run", budget=Budget(queries=2))
        assert len(server.prompts) == 2
        held = (tmp_path / "run" / VOTES).read_text().splitlines()
        assert len(held) == 1  # the first round needs no model
        result = evolve(server.url, documents, tmp_path / "run", budget=Budget(queries=999))
        assert max(Counter(server.prompts).values()) == 1
        assert (tmp_path / "run" / VOTES).read_text().splitlines()[:1] == held
    assert result.report.counts["passed"] >= 3


def test_a_model_that_misbehaves_costs_candidates_and_is_counted(tmp_path: Path) -> None:
    turns = itertools.count()

    def badly(kind: str, prompt: str) -> Said | str:
        n = next(turns)
        faults = (
            Said("x", "length"),
            Said("I'm sorry, I can't help with that."),
            Said(f"Write to ada{n}@fenn.org about the tides."),
            Said(status=400),
        )
        return faults[n % 4]

    with writers(badly) as server:
        result = evolve(server.url, corpus(12), tmp_path / "run")
    lost = Counter(str(one.fate) for one in result.made if one.record.startswith("draft-"))
    assert len(lost) >= 3
    assert set(lost) <= {"truncated", "refused", "withheld", "failed"}
    assert f"{lost.total()} candidates were not voted on" in " ".join(result.report.warnings)
    # Public texts that were voted on are left.
    assert {one.text for one in result.made if one.text} <= set(PUBLIC)
    assert result.report.counts["passed"] >= 1


def test_a_model_that_names_no_matter_ends_it() -> None:
    with (
        writers(lambda kind, prompt: "I'm sorry, I can't help.") as server,
        pytest.raises(TargetResponseError, match=r"cannot begin: \w+: the model refused"),
    ):
        evolve(server.url, corpus(3), None, ())


def test_a_folder_of_other_votes_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    with writers(script) as server:
        evolve(server.url, corpus(8), tmp_path / "run")
        asked = len(server.prompts)
        with pytest.raises(InputError, match="cost more than one epsilon"):
            evolve(server.url, corpus(8), tmp_path / "run", epsilon=2.0)
        assert len(server.prompts) == asked
