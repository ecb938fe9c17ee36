"""``ragwitness collusion estimate`` as a user calls it."""

import json
import re

import numpy as np
import pytest

from research.coalitions import coalition_probes, unit_rows, with_intents


def _write(path, queries, coalition=None) -> None:
    rng = np.random.default_rng(1)
    rows = queries.copy()
    if coalition is not None:
        rows[: len(coalition)] = coalition
    path.write_text(
        "".join(
            json.dumps({"account": f"u{a}", "time": float(rng.uniform(0, 99)), "vector": [*v]})
            + "\n"
            for a, one in enumerate(rows.round(4).tolist())
            for v in one
        )
    )


@pytest.fixture
def logs(tmp_path):
    """A log with five accounts that collude among 40, and ordinary traffic; both with FAQ."""
    rng = np.random.default_rng(0)
    faq = unit_rows(rng, 4, 24)

    def honest(n):
        return with_intents(rng, unit_rows(rng, n, 6, 24), 0.1, faq)

    log, ordinary = tmp_path / "log.jsonl", tmp_path / "ordinary.jsonl"
    _write(log, honest(40), coalition_probes(rng, "identical", (5, 6, 24)))
    days = tmp_path / "day.jsonl"
    with ordinary.open("w") as whole:
        for day in range(110):
            _write(days, honest(45))
            for line in days.read_text().splitlines():
                row = json.loads(line)
                whole.write(json.dumps(row | {"time": row["time"] + day * 10_000}) + "\n")
    return log, ordinary


@pytest.mark.slow
def test_an_estimate_names_the_coalition(command, logs, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    log, ordinary = logs
    out = tmp_path / "found.json"
    code, said = command(
        "collusion", "estimate", log, "--ordinary", ordinary, "--json", out,
        "--k-max", 4,
    )  # fmt: skip
    assert code == 3, said
    assert "above the cap of 4" in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 80
    assert "…" not in said
    told = json.loads(out.read_text())
    assert (told["accounts"], told["queries"]) == (40, 240)
    assert told["comparison"]["p"] <= 0.05
    named = {one["account"] for one in told["comparison"]["suspects"]}
    assert named == {f"u{at}" for at in range(5)}
    assert told["estimates"]["means"]["size"] == 5
    assert told["estimates"]["pairs"]["size"] > 10  # shared intents fool R5
    code, said = command("collusion", "estimate", log, "--only", "means")
    assert (code, "Nobody is named" in said) == (0, True), said
    code, said = command("collusion", "estimate", log, "--only", "means", "--k-max", 4)
    assert code == 4, said  # a cap that nothing can judge


def test_rows_that_cannot_be_used_are_left_out_and_named(command, logs) -> None:
    log, _ = logs
    good = log.read_text().splitlines()[:20]
    bad = [
        "not json",
        "[1]",
        json.dumps({"time": 1, "vector": [1] * 24}),
        json.dumps({"account": "a", "time": 1, "vector": [0] * 24}),
        json.dumps({"account": "a", "time": 1, "vector": [1] * 5}),
        json.dumps({"account": "a", "time": "yesterday", "vector": [1] * 24}),
    ]
    log.write_text("\n".join([*good, *bad]))
    code, said = command("collusion", "estimate", log, "--only", "pairs")
    assert code == 0, said
    for named in ("invalid JSON", "not an object", "'account'", "zeros", "5 values", "1 more"):
        assert named in said
    assert "20 queries" in said


@pytest.mark.parametrize(
    ("rows", "options", "named"),
    [
        (["{}"], [], "no usable query"),
        ([], [], "no usable query"),
        (['{"account": "a", "time": 0, "vector": [1, NaN]}'], [], "finite"),
        (['{"account": "a", "time": 0, "vector": [1, 2]}'], [], "one account"),
        (['{"account": "a", "time": 0, "text": "hello"}'], [], "--embedder"),
        (None, ["--only", "guess"], "'guess'"),
        (None, ["--threshold", "2"], "cosine"),
        (None, ["--window", "0"], "window"),
        (None, ["--seed", "-1"], "seed"),
        (None, ["--k-max", "0"], "k_max"),
        (None, ["--ordinary", "nowhere.jsonl"], "nowhere.jsonl"),
        (None, ["--json", "/dev/null/x"], "write"),
    ],
)
def test_a_bad_log_or_option_is_named(command, tmp_path, rows, options, named) -> None:
    rows = rows if rows is not None else [
        '{"account": "a", "time": 0, "vector": [1, 2]}',
        '{"account": "b", "time": "2026-01-01T00:00:00", "vector": [2, 1]}',
    ]  # fmt: skip
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(rows))
    code, said = command("collusion", "estimate", log, *options)
    assert code == 2, said
    assert named in said


def test_binary_and_missing_logs_are_named(command, tmp_path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"\x00\xff\xfe" * 99)
    for path, named in ((log, "no usable query"), (tmp_path / "none", "No such file")):
        code, said = command("collusion", "estimate", path)
        assert code == 2
        assert named in said


class _Letters:
    """Embeds a text by its letters."""

    def embed(self, texts):
        return np.array([np.bincount([ord(c) % 32 for c in t], minlength=32) for t in texts])


def test_texts_are_embedded_and_mixed_rows_left_out(command, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("ragwitness.models.model_registry.load_embedder", lambda name: _Letters())
    texts = ["xylophone quartz", "what is the rash on my arm", "jazz jazz jazz", "xylophone quartz"]
    rows = [{"account": f"u{at}", "time": at, "text": text} for at, text in enumerate(texts)]
    rows.append({"account": "u9", "time": 9, "vector": [1, 2, 3]})
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, said = command(
        "collusion", "estimate", log, "--embedder", "letters", "--only", "pairs", "--threshold",
        0.99,
    )  # fmt: skip
    assert code == 0, said
    assert re.search(r"pairs +2 ", said)
    assert "skipped" in said
    assert "where other rows" in said
