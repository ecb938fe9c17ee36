"""Packs of leak measurements and of canary probes, by the command line, and lies about both."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from ragwitness.attest.verdict import BundleVerdict
from ragwitness.canary.folder import read_plan
from ragwitness.core.run_files import REPORT, RESULT, SEAL, SEAL_NOTE
from ragwitness.crypto.notes import sign_note
from ragwitness.evidence.pack import ANSWERS_FILE, LOG, ROWS, SIGNED_LOG, TEXTS, page_of
from ragwitness.evidence.subject import seal_text
from tests.support.canary_audit import Command, model_of, planted, probed, result_of
from tests.support.canary_model import serving
from tests.support.copier import Copier
from tests.unit.evidence.forger import Forger, audited, called, corpus, judged

pytestmark = pytest.mark.slow


def _failure(forger: Forger) -> str:
    found = judged(forger.packed())
    return found.failures[0].failure if found.failures else found.outcome


def _with_page(forger: Forger, change: Callable[[dict], object]) -> None:
    """A result changed by somebody who writes its page anew."""
    forger.edit(RESULT, change)
    forger.files[REPORT] = page_of(json.loads(forger.files[RESULT])).encode()


def _resealed(forger: Forger, change: Callable[[dict], object]) -> None:
    """A seal made anew, long after."""
    forger.edit(SEAL, change)
    forger.files[SEAL_NOTE] = sign_note(seal_text(forger.files[SEAL]), [forger.key])
    forger.relink()


# What leaks.


@pytest.fixture(scope="module")
def leaked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sealed leak measurement with two attacks, open and hidden."""
    folder = tmp_path_factory.mktemp("leaked")
    held, _, out = corpus(folder)
    code = called(
        "leak", f"lab:{held}?generator=repeat", "--corpus", held, "--background", out,
        "--attacks", "composite,pide", "--prompts", 12, "--run", folder / "run",
        "--seal", folder / "auditor.key", "--max-queries", 100,
    )  # fmt: skip
    assert code == 0
    assert called("seal", folder / "run", "-o", folder / "open.zip") == 0
    assert called("seal", folder / "run", "-o", folder / "hidden.zip", "--hide-texts") == 0
    return folder


LEAK_LIES = {
    "a measure edited": (
        lambda f: _with_page(f, lambda r: r["together"][0].update(count=0)),
        "measures.together.count",
    ),
    "a measure of one attack edited": (
        lambda f: _with_page(f, lambda r: r["attacks"][0]["measures"][0].update(count=0)),
        "measures.attacks.measures",
    ),
    "fewer records": (lambda f: _with_page(f, lambda r: r.update(records=3)), "measures.records"),
    "warnings left out": (
        lambda f: _with_page(f, lambda r: r.update(warnings=["None."])),
        "measures.warnings",
    ),
    "a setting changed": (
        lambda f: _with_page(f, lambda r: r["settings"].update(seed="9")),
        "measures.settings.seed",
    ),
    "a budget moved": (
        lambda f: _with_page(f, lambda r: r["spent"].update(max_queries=5)),
        "measures.spent.max_queries",
    ),
    "an attack left out": (
        lambda f: _with_page(f, lambda r: r["attacks"].pop()),
        "counts.prompts",
    ),
    "prompts miscounted": (
        lambda f: f.edit(ROWS, lambda rows: rows[0].update(prompts=3)),
        "counts.prompts",
    ),
    "another version": (
        lambda f: _with_page(f, lambda r: r.update(ragwitness="9")),
        "code.version",
    ),
    "another target": (
        lambda f: _with_page(f, lambda r: r.update(target="lab:another")),
        "seal.system",
    ),
    "a record swapped, committed to anew": (
        lambda f: (f.edit(TEXTS, lambda rows: rows[0].update(text="Another.")), f.recommit()),
        "texts.root",
    ),
    "an answer dropped, linked anew": (
        lambda f: (f.edit(ANSWERS_FILE, lambda rows: rows.pop(0)), f.relink()),
        "prompts.unanswered",
    ),
    "a friendlier seed, sealed anew": (
        lambda f: _resealed(f, lambda seal: seal["settings"]["limits"].update(seed=5)),
        "prompts.unanswered",
    ),
}


def test_a_pack_of_a_leak_measurement_passes(leaked: Path) -> None:
    found = judged((leaked / "open.zip").read_bytes())
    assert (found.outcome, found.failures) == ("pass", ())
    hidden = judged((leaked / "hidden.zip").read_bytes())
    assert (hidden.outcome, hidden.failures) == ("inconclusive", ())
    assert "the measures were not recomputed" in hidden.why


@pytest.mark.parametrize("lie", LEAK_LIES)
def test_a_lie_about_what_leaked_is_caught_by_name(leaked: Path, lie: str) -> None:
    forger = Forger.of(leaked / "open.zip", leaked / "auditor.key")
    change, check = LEAK_LIES[lie]
    change(forger)
    assert _failure(forger) == check


def test_stored_transcripts_cannot_be_sealed(leaked: Path, command: Command) -> None:
    held, _, _ = corpus(leaked)
    code, said = command(
        "leak", "--transcripts", leaked / "run" / "transcripts.jsonl", "--corpus", held,
        "--run", leaked / "again", "--seal", leaked / "auditor.key",
    )  # fmt: skip
    assert code == 2
    assert "cannot be sealed before their first query" in said


# What a model learned.


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Path:
    return planted(tmp_path, monkeypatch, command)


CANARY_LIES = {
    "a score edited": (
        lambda r: r["slots"][0]["scores"][0].__setitem__(3, -1.0),
        "verdicts.slots.scores",
    ),
    "a rank edited": (lambda r: r["finding"].update(ranks=[2]), "verdicts.finding.ranks"),
    "a p-value edited": (lambda r: r["finding"].update(p_value=0.5), "verdicts.finding.p_value"),
    "a verdict edited": (
        lambda r: r["finding"].update(verdict="inconclusive"),
        "verdicts.finding.verdict",
    ),
    "alpha moved": (lambda r: r["finding"].update(alpha=0.2), "verdicts.finding.alpha"),
    "another target": (lambda r: r.update(target="http://elsewhere"), "seal.system"),
    "another release": (lambda r: r.update(release="2"), "counts.release"),
    "another digest": (lambda r: r["look"].update(digest="0" * 64), "verdicts.look.digest"),
    "another way": (lambda r: r["settings"].update(way="sampled"), "verdicts.settings.way"),
    "warnings left out": (lambda r: r.update(warnings=["None."]), "verdicts.warnings"),
}


def test_a_look_is_a_pack_and_every_lie_about_it_has_a_name(
    folder: Path, command: Command, tmp_path: Path
) -> None:
    more = "--seal", tmp_path / "auditor.key", "--runs-log", tmp_path / "log"
    probed(folder, command, "run", *more, violating=True)
    assert result_of("run")["finding"]["verdict"] == "trained-or-remembered"  # type: ignore[index]
    # 1. Hidden: nothing of the draw is shown, and the verdict still follows from the scores.
    code, said = command("seal", "run", "-o", "hidden.zip", "--hide-texts")
    assert code == 0
    assert "opened" not in said
    hidden = judged(Path("hidden.zip").read_bytes())
    assert (hidden.outcome, hidden.failures) == ("inconclusive", ())
    status = {check.name: check.status for check in hidden.checks}
    assert (status["draw"], status["scores"], status["verdicts"]) == (
        "not checked", "not checked", "pass",
    )  # fmt: skip
    forger = _unlogged(Forger.of(Path("hidden.zip"), tmp_path / "auditor.key"))
    _with_page(forger, lambda r: r["finding"].update(p_value=0.001))
    assert _failure(forger) == "verdicts.finding"
    # 2. Open: everything again, and the draw decides no further look.
    code, said = command("seal", "run", "-o", "open.zip")
    assert (code, "no new probe of its plan decides" in said) == (0, True)
    found = judged(Path("open.zip").read_bytes())
    assert (found.outcome, found.failures) == ("pass", ())
    honest = _unlogged(Forger.of(Path("open.zip"), tmp_path / "auditor.key"))
    assert _failure(honest) == "pass"
    for lie, (change, check) in CANARY_LIES.items():
        forger = honest.copy()
        _with_page(forger, change)
        assert _failure(forger) == check, lie
    # 3. Sealed anew: another draw, other examples, another number of looks, an earlier look gone.
    resealed = {
        "draw.examples": lambda s: s["settings"]["parts"].update(held_out="0" * 64),
        "draw.design": lambda s: s["settings"]["design"].update(candidates=40),
        "counts.design": lambda s: s.update(looks=5),
        "texts.root": lambda s: s["texts"].update(root="0" * 64),
        "commitment.opening": lambda s: s["settings"].update(commitment="0" * 64),
    }
    for check, change in resealed.items():
        forger = honest.copy()
        _resealed(forger, change)
        assert _failure(forger) == check, check
    forger = honest.copy()
    _resealed(forger, lambda s: s["settings"]["history"]["earlier"].append(
        {"ranks": [[1, 20]], "own": 0.05, "called": []}))  # fmt: skip
    assert _failure(forger) == "inconclusive"  # another look in between would look like this


def _unlogged(forger: Forger) -> Forger:
    del forger.files[LOG], forger.files[SIGNED_LOG]
    _resealed(forger, lambda seal: seal.update(logged=False))
    return forger


# What a sealed run refuses.


def test_a_sealed_run_goes_on_only_as_it_was_sealed(tmp_path: Path, command: Command) -> None:
    run = audited(tmp_path)
    held, asked, out = corpus(tmp_path)
    same = [
        "audit", f"lab:{held}?generator=repeat", "--documents", asked, "--known-out", out,
        "--method", "s2mia", "--run", run, "--yes",
    ]  # fmt: skip
    seal = ["--seal", tmp_path / "auditor.key"]
    assert command(*same, *seal)[0] == 0  # the same again: nothing is asked
    for more, words in (
        ([], "goes on only as it was sealed"),
        ([*seal, "--alpha", 0.2], "was sealed for something else"),
        ([*seal, "--max-queries", 500], "was sealed for something else"),
        (["--seal", tmp_path / "other.key"], "was sealed for something else"),
        ([*seal, "--runs-log", tmp_path / "log"], "was sealed for something else"),
        (["--runs-log", tmp_path / "log"], "is for a sealed run"),
    ):
        code, said = command(*same, *more)
        assert (code, words in " ".join(said.split())) == (2, True), more
    # Answers that were changed on the disk are noticed when the pack is made.
    answers = run / "answers.jsonl"
    text = answers.read_text()
    answers.write_text(text.replace('"text":"', '"text":"And ', 1))
    code, said = command("seal", run, "-o", tmp_path / "x.zip")
    assert code == 2
    assert "not the row that was linked" in " ".join(said.split())
    answers.write_text(text)
    assert command("seal", run, "-o", tmp_path / "x.zip")[0] == 0
    # Another key, an unknown id, and a run that was never sealed.
    assert command("seal", run, "-o", tmp_path / "y.zip", "--key", tmp_path / "other.key")[0] == 2
    assert command("seal", run, "-o", tmp_path / "y.zip", "--open", "d0")[0] == 2
    code, said = command("seal", run, "-o", tmp_path / "y.zip", "--hide-texts", "--open", "none")
    assert (code, "no document 'none'" in said) == (2, True)
    code, said = command("seal", tmp_path, "-o", tmp_path / "y.zip")
    assert (code, "is not sealed" in said) == (2, True)


def test_answers_of_before_cannot_be_sealed(tmp_path: Path, command: Command) -> None:
    held, asked, out = corpus(tmp_path)
    same = [
        "audit", f"lab:{held}?generator=repeat", "--documents", asked, "--known-out", out,
        "--method", "s2mia", "--run", tmp_path / "run", "--yes",
    ]  # fmt: skip
    assert command(*same)[0] == 0
    code, said = command(*same, "--seal", tmp_path / "auditor.key")
    assert code == 2
    assert "counts only before the first query" in " ".join(said.split())


def test_a_key_that_others_can_read_is_refused_and_a_log_of_another_key_too(
    tmp_path: Path, command: Command
) -> None:
    log = tmp_path / "log"
    audited(tmp_path, "--runs-log", log)
    held, asked, out = corpus(tmp_path)
    code, said = command(
        "audit", f"lab:{held}?generator=repeat", "--documents", asked, "--known-out", out,
        "--method", "s2mia", "--run", tmp_path / "more", "--yes",
        "--seal", tmp_path / "another.key", "--runs-log", log,
    )  # fmt: skip
    assert code == 2
    assert "signed by another key" in " ".join(said.split())
    (tmp_path / "auditor.key").chmod(0o644)
    code, said = command("seal", tmp_path / "run", "-o", tmp_path / "x.zip")
    assert (code, "chmod 600" in said) == (2, True)


# Runs that do not go smoothly, and methods that learn.


def _verdict(run: Path, out: Path, *more: object) -> BundleVerdict:
    assert called("seal", run, "-o", out, *more) == 0
    return judged(out.read_bytes())


def test_questions_that_failed_and_those_that_a_cap_refused_are_part_of_the_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A target that fails at some questions, and a run that stops at its cap."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "moody.py").write_text(
        "def answer(prompt):\n"
        "    if len(prompt) % 3 == 0:\n"
        "        raise RuntimeError('not today')\n"
        "    return prompt[:200]\n"
    )
    held, asked, out = corpus(tmp_path)
    for run, more in (("moody", ()), ("capped", ("--max-queries", 20))):
        code = called(
            "audit", "python:moody:answer", "--documents", asked, "--known-out", out,
            "--method", "s2mia", "--run", tmp_path / run, "--yes",
            "--seal", tmp_path / "auditor.key", *more,
        )  # fmt: skip
        assert code == 0
        found = _verdict(tmp_path / run, tmp_path / f"{run}.zip")
        assert (found.outcome, found.failures) == ("pass", ()), found.why
        answers = next(check for check in found.checks if check.name == "answers")
        assert "of them failed" in answers.detail
        hidden = _verdict(tmp_path / run, tmp_path / f"{run}-hidden.zip", "--hide-texts")
        assert hidden.failures == ()
    # A failure that is hidden away leaves a question without an answer.
    forger = Forger.of(tmp_path / "moody.zip", tmp_path / "auditor.key")
    forger.edit(
        ANSWERS_FILE,
        lambda rows: rows.remove(next(r for r in rows if r["asked"][3] == "failed")),
    )
    forger.relink()
    assert _failure(forger) == "scores.unanswered"
    del held


_SYLLABLES = "ba be bi bo bu da de di do du ka ke ki ko ku ma me mi mo mu ra re ri ro ru".split()


def _words(count: int, seed: int, name: str) -> list[dict[str, str]]:
    rng = random.Random(seed)

    def word() -> str:
        return "".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(2, 4)))

    return [{"id": f"{name}{n}", "text": " ".join(word() for _ in range(40))} for n in range(count)]


def test_a_method_that_learns_is_trained_again_with_texts_and_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The classifier of S-RAG, from the answers of its shadow system."""
    from ragwitness.membership import prepared as order
    from ragwitness.models import model_registry as registry

    for module in (registry, order):
        monkeypatch.setattr(module, "load_language_model", lambda spec="reader": Copier())
    inside = _words(6, 1, "in")
    parts = {"held": inside, "asked": inside[:4] + _words(4, 2, "out")}
    parts |= {"out": _words(40, 3, "known"), "aux": _words(60, 4, "aux")}
    for name, rows in parts.items():
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{name}.jsonl").write_text(text)
    held, asked, out, aux = (tmp_path / f"{name}.jsonl" for name in parts)
    code = called(
        "audit", f"lab:{held}", "--documents", asked, "--known-out", out, "--auxiliary", aux,
        "--method", "s-rag:paper", "--run", tmp_path / "run", "--yes", "--seal", tmp_path / "a.key",
    )  # fmt: skip
    assert code == 0
    found = _verdict(tmp_path / "run", tmp_path / "open.zip")
    assert (found.outcome, found.failures) == ("pass", ())
    hidden = _verdict(tmp_path / "run", tmp_path / "hidden.zip", "--hide-texts")
    assert (hidden.outcome, hidden.failures) == ("inconclusive", ())
    lied = Forger.of(tmp_path / "open.zip", tmp_path / "a.key")
    lied.edit(RESULT, lambda result: result["documents"][0]["evidence"][0].update(word="a gun"))
    assert _failure(lied) == "verdicts.word"
    # The classifier is trained on the shadow's rows: they bind the verdicts even without texts.
    forger = Forger.of(tmp_path / "hidden.zip", tmp_path / "a.key")
    forger.edit(
        ROWS,
        lambda rows: [
            r.update(features=[0.0] * len(r["features"])) for r in rows if "shadow" in r["stage"]
        ],
    )
    assert _failure(forger).startswith("verdicts.")


def test_a_pack_of_a_look_with_refusals_and_a_spare_example_is_recomputed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    """One example is refused whole, and a spare one takes its place; all others lack a cell."""
    place = planted(tmp_path, monkeypatch, command).parent
    more = "--probes", 5, "--spares", 1, "--candidates", 20
    assert command("canary", "draw", place / "examples.jsonl", "-o", "kept", *more)[0] == 0
    assert command("canary", "plant", "kept")[0] == 0
    plan = read_plan(Path("kept"))
    assert (len(plan.asked), len(plan.spares)) == (4, 1)
    slot = plan.draw().slots[0]
    lost = plan.asked[0].document[:40], slot.candidates[slot.chosen - 1]
    with serving(model_of(Path("kept"), violating=True, refuses=lost)) as url:
        code, said = command(
            "canary", "probe", url, "--plan", "kept", "--run", "run", "--retries", 0,
            "--seal", tmp_path / "auditor.key",
        )  # fmt: skip
    assert code == 0, said
    examples = result_of("run")["slots"][0]["examples"]  # type: ignore[index]
    assert examples == [one.id for one in (*plan.asked[1:], *plan.spares)]
    warnings = result_of("run")["warnings"]
    assert any("4 of 80 readings are missing" in one for one in warnings)  # type: ignore[union-attr]
    # Hidden, a refused question is known by its label alone: it was asked, and nothing was paid.
    assert command("seal", "run", "-o", "hidden.zip", "--hide-texts")[0] == 0
    hidden = judged(Path("hidden.zip").read_bytes())
    assert (hidden.outcome, hidden.failures) == ("inconclusive", ())
    status = {check.name: check.status for check in hidden.checks}
    assert (status["counts"], status["verdicts"]) == ("pass", "pass")
    forger = Forger.of(Path("hidden.zip"), tmp_path / "auditor.key")
    _with_page(forger, lambda r: r["spent"].update(queries=1))
    assert _failure(forger) == "counts.spent"
    assert command("seal", "run", "-o", "open.zip")[0] == 0
    found = judged(Path("open.zip").read_bytes())
    assert (found.outcome, found.failures) == ("pass", ())
