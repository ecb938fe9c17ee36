"""Making a corpus over HTTP with models that go wrong: nothing unsafe is ever written."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from ragwitness.core.errors import TargetUnreachableError
from ragwitness.core.types import Document
from ragwitness.synthesis.agents import Asking, MakingConfig
from ragwitness.synthesis.generator import Fate
from ragwitness.synthesis.run import write_made
from tests.support.synthesis import assert_safe, assert_safe_after, corpus, make
from tests.support.writers import Said, good, writers

LEAKS = {
    "says safe at once to a copy": lambda kind, prompt, record: {"generate": record}.get(kind),
    "rewrites into a copy": lambda kind, prompt, record: {
        "judge": None if record in prompt.partition("GENERATED DATA")[2] else "SUGGESTIONS: more",
        "rewrite": record,
    }.get(kind),
    "hands the record back": lambda kind, prompt, record: {
        "judge": f"SAFE_DATA: [BEG]{record}[END]THISISSAFE"
    }.get(kind),
    "never says safe": lambda kind, prompt, record: {"judge": "SUGGESTIONS: more"}.get(kind),
    "broken markers": lambda kind, prompt, record: {"judge": f"[BEG]{record}THISISSAFE [END"}.get(
        kind
    ),
    "both at once": lambda kind, prompt, record: {
        "judge": f"SUGGESTIONS: THISISSAFE [BEG]{record}[END]"
    }.get(kind),
    "markup around every word": lambda kind, prompt, record: {
        "generate": " ".join(f"<b>{word}</b>" for word in record.split())
    }.get(kind),
    "a script tag": lambda kind, prompt, record: {"generate": f"<script>{record}</script>"}.get(
        kind
    ),
    "invisible characters": lambda kind, prompt, record: {"generate": "\u200b".join(record)}.get(
        kind
    ),
    "refuses": lambda kind, prompt, record: {
        "generate": f"I'm sorry, I can't help with that: {record}"
    }.get(kind),
    "cut off": lambda kind, prompt, record: Said(record, "length") if kind == "generate" else None,
    "another language": lambda kind, prompt, record: {
        "generate": "Der Patient ist krank und hat das nicht gewusst, und es ist auch nicht klar,"
        " was er nun mit den anderen zu tun hat."
    }.get(kind),
    "the name alone": lambda kind, prompt, record: {
        "generate": f"Somebody called {record.partition('Signed by ')[2]} asked."
    }.get(kind),
    "server error": lambda kind, prompt, record: Said(status=500) if kind == "judge" else None,
}


@pytest.mark.parametrize("fault", LEAKS)
def test_no_unsafe_record_is_ever_written(fault: str, tmp_path: Path) -> None:
    documents = corpus(3)
    by_text = {d.text: d for d in documents}

    def script(kind: str, prompt: str) -> Said | str:
        record = next((t for t in by_text if t in prompt), documents[1].text)
        said = LEAKS[fault](kind, prompt, record)
        return good(kind, prompt) if said is None else said

    with writers(script) as server:
        result = make(server.url, documents, tmp_path / "run", timeout=0.4)
    out = tmp_path / "safe.jsonl"
    write_made(out, result)
    assert assert_safe(out, documents) == []
    assert len(result.made) == 3
    assert all(one.fate is not Fate.PASSED and one.text == "" for one in result.made)
    assert all(one.reason for one in result.made)


def test_a_model_that_misbehaves_at_random_leaks_nothing(tmp_path: Path) -> None:
    documents = [*corpus(6), Document("blank", " "), Document("copy", corpus(1)[0].text)]
    rng = random.Random(7)

    def script(kind: str, prompt: str) -> Said | str:
        record = next((d.text for d in documents[:6] if d.text in prompt), documents[2].text)
        if kind == "identify" or rng.random() < 0.6:
            return good(kind, prompt)
        fault = rng.choice(list(LEAKS))
        return LEAKS[fault](kind, prompt, record) or good(kind, prompt)

    config = MakingConfig(rounds=4, asking=Asking(attempts=3))
    with writers(script) as server:
        result = make(server.url, documents, tmp_path / "run", config=config)
    out = tmp_path / "safe.jsonl"
    rows = assert_safe_after(out, result, documents[:6])
    assert len(rows) == result.report.counts.get("passed", 0)
    assert sum(result.report.counts.values()) == 8
    assert [one.fate for one in result.made[6:]] == [Fate.UNUSABLE, Fate.DUPLICATE]


def test_an_agent_that_falls_silent_ends_the_run_and_a_later_start_goes_on(tmp_path: Path) -> None:
    documents, silent = corpus(3), [True]

    def script(kind: str, prompt: str) -> Said:
        return Said(good(kind, prompt), wait=0.8 if kind == "judge" and silent[0] else 0.0)

    with writers(script) as server:
        with pytest.raises(TargetUnreachableError, match="no complete reply"):
            make(server.url, documents, tmp_path / "run", timeout=0.3)
        silent[0] = False
        result = make(server.url, documents, tmp_path / "run")
        made = Counter(prompt for prompt, _ in server.prompts if "You judge" not in prompt)
    assert result.report.counts == {"passed": 3}
    assert max(made.values()) == 1


def test_a_colluding_model_does_not_carry_records_out_in_pieces(tmp_path: Path) -> None:
    rng = random.Random(8)
    words = ["".join(rng.choices("abdegilmnorstu", k=6)) for _ in range(480)]
    documents = [Document(str(n), " ".join(words[60 * n : 60 * n + 60])) for n in range(8)]

    def half(place: int, part: int) -> str:
        own = documents[place % 8].text.split()[30 * part : 30 * part + 30]
        return " ".join(" ".join((*own[i : i + 4], "perhaps")) for i in range(0, 30, 4))

    def script(kind: str, prompt: str) -> Said | str:
        place = next(n for n, one in enumerate(documents) if one.text in prompt)
        return f"{half(place, 0)} {half(place + 1, 1)}"

    with writers(script) as server:
        result = make(server.url, documents, tmp_path / "run", method="paraphrase")
    out = [one for one in result.made if one.violation == "similarity"]
    assert {one.reason for one in out} == {"with earlier texts it gives a record out in pieces"}
    assert not any(one.text for one in out)
    told = " ".join(one.text for one in result.made)
    assert any(one.fate is Fate.PASSED for one in result.made)
    for one in documents:
        assert sum(word in told for word in one.text.split()) <= 0.75 * 60
