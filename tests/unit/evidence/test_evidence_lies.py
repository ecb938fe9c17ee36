"""Opponents: an auditor who lies afterwards with the key at hand, and others without it.

Each lie is caught by the name of a check, or named as one that no pack can show.
"""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from ragwitness.attest.archive import pack
from ragwitness.core.errors import VerificationError
from ragwitness.core.run_files import REPORT, RESULT, SEAL, SEAL_NOTE, SEAL_STAMP
from ragwitness.crypto.entries import read_entries
from ragwitness.crypto.keys import PrivateKey
from ragwitness.crypto.merkle import MerkleLog
from ragwitness.crypto.notes import Checkpoint, sign_checkpoint, sign_note
from ragwitness.evidence.case import PackKnown
from ragwitness.evidence.pack import (
    ANSWERS_FILE,
    LOG,
    MANIFEST,
    NOTE,
    ROWS,
    SIGNED_LOG,
    TEXTS,
    pack_text,
)
from ragwitness.evidence.subject import (
    RunAnswered,
    decode_entry,
    encode_entry,
    root_of,
    seal_text,
    units_digest,
)
from ragwitness.evidence.verifier import verify_pack
from ragwitness.membership.method_registry import AUDITS
from tests.unit.evidence.forger import Forger, called, judged

STRANGER = PrivateKey.generate("stranger")


def _failure(data: bytes, known: PackKnown | None = None) -> str:
    """Name of what failed; the outcome where nothing did."""
    try:
        found = judged(data, known)
    except (VerificationError, KeyError):  # it names no key that could be told
        found = verify_pack(data)
    return found.failures[0].failure if found.failures else found.outcome


def _answer(forger: Forger, number: int = 0) -> None:
    """Another text in one answer."""

    def change(rows: list) -> None:
        row = json.loads(rows[number]["text"])
        row["answer"]["text"] = "I know nothing of that."
        rows[number]["text"] = json.dumps(row, sort_keys=True, separators=(",", ":"))

    forger.edit(ANSWERS_FILE, change)


def _drop_answer(forger: Forger) -> None:
    forger.edit(ANSWERS_FILE, lambda rows: rows.pop(3))


def _turn_answers(forger: Forger) -> None:
    forger.edit(ANSWERS_FILE, lambda rows: rows.insert(0, rows.pop(5)))


def _add_answer(forger: Forger) -> None:
    forger.edit(ANSWERS_FILE, lambda rows: rows.append(rows[0]))


def _relabel(forger: Forger) -> None:
    forger.edit(ANSWERS_FILE, lambda rows: rows[0]["asked"].__setitem__(2, rows[9]["asked"][2]))


def _swap(forger: Forger) -> None:
    forger.edit(TEXTS, lambda rows: rows[0].update(text="Quite another document than that."))


def _drop_known_out(forger: Forger) -> None:
    gone = forger.rows(ROWS)[0]["document"]
    forger.edit(TEXTS, lambda rows: rows.remove(next(r for r in rows if r["id"] == gone)))
    forger.edit(ROWS, lambda rows: rows.pop(0))


def _unlike(forger: Forger) -> None:
    def change(rows: list) -> None:
        for number, row in enumerate(rows):
            if row["part"] == "known_out":
                row["text"] = f"ERR {number:05} 0x{number:08x} :: segmentation fault @ {number}"

    forger.edit(TEXTS, change)


def _salt(forger: Forger) -> None:
    forger.edit(TEXTS, lambda rows: rows[0].update(blinding="00" * 32))


def _score(forger: Forger) -> None:
    forger.edit(ROWS, lambda rows: rows[-1].update(value=2.0))


def _score_by_a_hair(forger: Forger) -> None:
    """Less than two processors differ by, but a tie is broken."""
    said = forger.rows(ROWS)[-1]["value"] * (1 + 1e-8)
    forger.edit(ROWS, lambda rows: rows[-1].update(value=said))
    _document(score=said, p_value=0.02)(forger)


def _score_everywhere(forger: Forger) -> None:
    _score(forger)
    forger.edit(RESULT, lambda result: result["documents"][-1].update(score=2.0, p_value=0.04))


def _document(**values: object) -> Callable[[Forger], None]:
    return lambda forger: forger.edit(
        RESULT, lambda result: result["documents"][-1].update(**values)
    )


def _summary(**values: object) -> Callable[[Forger], None]:
    return lambda forger: forger.edit(RESULT, lambda result: result["summary"].update(**values))


def _within(name: str, **values: object) -> Callable[[Forger], None]:
    return lambda forger: forger.edit(
        RESULT, lambda result: result["summary"][name].update(**values)
    )


def _seal(**values: object) -> Callable[[Forger], None]:
    """A seal that says something else, with the signature of before."""
    return lambda forger: forger.edit(SEAL, lambda seal: seal.update(**values))


def _seal_plan(**values: object) -> Callable[[Forger], None]:
    return lambda forger: forger.edit(SEAL, lambda seal: seal["settings"]["plan"].update(**values))


def _head(forger: Forger) -> None:
    forger.manifest["chain"]["head"] = "11" * 32


def _evidence(forger: Forger) -> None:
    def change(result: dict) -> None:
        sure = {"low": 1.0, "high": 1.0}
        word = {"word": "smoking gun", "before": "the", "probability": sure, "baseline": 1e-9}
        result["documents"][0]["evidence"] = [word]

    forger.edit(RESULT, change)


def _page(forger: Forger) -> None:
    forger.files[REPORT] = forger.files[REPORT].replace(b"in the database", b"IN THE DATABASE")


def _resigned(forger: Forger) -> None:
    """The seal signed by somebody else."""
    forger.files[SEAL_NOTE] = sign_note(seal_text(forger.files[SEAL]), [STRANGER])


def _log(forger: Forger, change: Callable[[list], object]) -> None:
    """Another log under the auditor's own signature."""
    entries = list(read_entries(forger.files[LOG]))
    change(entries)
    log = MerkleLog()
    log.extend(entries)
    forger.files[LOG] = b"".join(len(one).to_bytes(2, "big") + one for one in entries)
    note = Checkpoint(forger.key.name, log.size, log.root())
    forger.files[SIGNED_LOG] = sign_checkpoint(note, [forger.key])


def _without(entries: list, number: int) -> None:
    """Drop everything that a log says of its first or its second run."""
    seals = list(dict.fromkeys(decode_entry(one).seal for one in entries))
    entries[:] = [one for one in entries if decode_entry(one).seal != seals[number]]


def _drop_entry(forger: Forger) -> None:
    """An entry taken out, under the checkpoint of before."""
    entries = list(read_entries(forger.files[LOG]))[1:]
    forger.files[LOG] = b"".join(len(one).to_bytes(2, "big") + one for one in entries)


def _forget_first_run(forger: Forger) -> None:
    """A look dropped from the series: the log says that the other run never was."""
    _log(forger, lambda entries: _without(entries, 0))


def _forget_own_run(forger: Forger) -> None:
    _log(forger, lambda entries: _without(entries, 1))


def _forget_own_end(forger: Forger) -> None:
    _log(forger, lambda entries: entries.pop())


def _ended_before(forger: Forger) -> None:
    """The run was concluded before, with answers that it has no more."""

    def change(entries: list) -> None:
        own = decode_entry(entries[-1])
        entries.insert(-1, encode_entry(replace(own, head="33" * 32)))

    _log(forger, change)


def _answered_otherwise(forger: Forger) -> None:
    """The first answers were others when they were logged: the run was recorded twice."""

    def change(entries: list) -> None:
        for place, entry in enumerate(entries):
            told = decode_entry(entry)
            if isinstance(told, RunAnswered) and told.answers == 4:
                entries[place] = encode_entry(replace(told, head="44" * 32))

    _log(forger, change)


def _no_log(forger: Forger) -> None:
    del forger.files[LOG], forger.files[SIGNED_LOG]


def _stamp(forger: Forger) -> None:
    forger.files[SEAL_STAMP] = b"a token of something else"


def _relinked(lie: Callable[[Forger], None]) -> Callable[[Forger], None]:
    """A lie with new commitments and a new chain behind it."""

    def change(forger: Forger) -> None:
        lie(forger)
        forger.recommit()

    return change


LIES = {
    # Answers.
    "an answer changed": (_answer, "answers.opening"),
    "an answer changed, and all linked anew": (_relinked(_answer), "runs.ended"),
    "an answer dropped": (_drop_answer, "answers.chain"),
    "an answer dropped, and all linked anew": (_relinked(_drop_answer), "runs.ended"),
    "answers in another order": (_turn_answers, "answers.chain"),
    "answers in another order, linked anew": (_relinked(_turn_answers), "runs.ended"),
    "an answer twice, linked anew": (_relinked(_add_answer), "runs.ended"),
    "an answer about another document": (_relabel, "answers.chain"),
    "an answer about another document, linked anew": (_relinked(_relabel), "answers.label"),
    "the chain forked: another last link": (_head, "answers.chain"),
    # Documents.
    "a document swapped after the fact": (_swap, "texts.opening"),
    "a document swapped, committed to anew": (_relinked(_swap), "texts.root"),
    "a known-out document removed": (_drop_known_out, "texts.root"),
    "an unlike known-out set slipped in": (_unlike, "texts.opening"),
    "an unlike known-out set, committed to anew": (_relinked(_unlike), "texts.root"),
    "the truth of a document turned": (
        lambda f: f.edit(TEXTS, lambda rows: rows[0].update(member=True)),
        "texts.root",
    ),
    "another salt": (_salt, "texts.opening"),
    "a known-out score left out": (lambda f: f.edit(ROWS, lambda r: r.pop(0)), "units"),
    "scores in another order": (lambda f: f.edit(ROWS, lambda r: r.insert(0, r.pop())), "units"),
    # The seal.
    "alpha moved in the seal": (_seal_plan(alpha=0.2), "seal.note"),
    "the seed moved in the seal": (_seal_plan(tie_seed=7), "seal.note"),
    "an older version in the seal": (_seal(code={"version": "0.0.9", "digest": ""}), "seal.note"),
    "more looks in the seal": (_seal(looks=9), "seal.note"),
    "an earlier hour in the seal": (_seal(begun="2020-01-01T00:00:00+00:00"), "seal.note"),
    "the seal signed by another key": (_resigned, "seal.signature"),
    "a time stamp of something else": (_stamp, "seal.timestamp"),
    # The result.
    "a score edited": (_score, "scores"),
    "a score and its verdict edited": (_score_everywhere, "scores"),
    "a score edited by a hair, to break a tie": (_score_by_a_hair, "verdicts.p_value"),
    "a p-value edited": (_document(p_value=0.001), "verdicts.p_value"),
    "a q-value edited": (_document(q_value=0.001), "verdicts.q_value"),
    "a verdict edited": (_document(verdict="in"), "verdicts.verdict"),
    "a reason edited": (_document(reason="the evidence decides"), "verdicts.reason"),
    "a word of evidence invented": (_evidence, "verdicts.evidence"),
    "counts edited": (_within("counts", **{"in": 6}), "verdicts.counts.in"),
    "alpha moved": (_summary(alpha=0.2), "verdicts.alpha"),
    "another method": (_summary(method="mba"), "verdicts.method"),
    "a setting changed": (_within("settings", method="mba"), "verdicts.settings.method"),
    "another target": (_summary(target="lab:another"), "seal.system"),
    "the calibration edited": (_within("calibration", n=99), "verdicts.calibration.n"),
    "a set called alike": (_within("calibration", exact=False), "verdicts.calibration.exact"),
    "a row left out is not told": (_summary(left_out=[]), "verdicts.left_out"),
    "warnings left out": (_summary(warnings=["All is well."]), "verdicts.warnings"),
    "a budget moved": (_within("spent", max_queries=5), "verdicts.spent.max_queries"),
    "fewer queries paid for": (_within("spent", queries=1), "counts.spent"),
    "fewer questions": (_summary(queries=1), "verdicts.queries"),
    "a younger version": (_summary(version="9.9.9"), "code.version"),
    "the page changed": (_page, "page"),
    # The log.
    "an entry taken out of the log": (_drop_entry, "runs.rolled_back"),
    "the log left out": (_no_log, "runs.missing"),
    "a log without this run": (_forget_own_run, "runs.begun"),
    "a log without its end": (_forget_own_end, "runs.ended"),
    "a log in which it ended with other answers": (_ended_before, "runs.forked"),
    "a log in which other answers arrived": (_answered_otherwise, "runs.forked"),
}
"""What an auditor changes afterwards, signing the pack again; and the check that catches it.

The log of runs holds the digest of the result, so most lies about it fail there first; the test
takes both packs, with and without the log's word, to see that the recomputation catches them too.
"""


def test_there_are_thirty_lies_and_more() -> None:
    assert len(LIES) >= 30


def test_the_honest_pack_passes(place: Path, honest: Forger) -> None:
    found = judged((place / "open.zip").read_bytes())
    assert (found.outcome, found.failures) == ("pass", ())
    lost = json.loads(honest.files[RESULT])["summary"]["left_out"]
    assert [one["file"] for one in lost] == ["asked.jsonl"]
    assert honest.packed() == (place / "open.zip").read_bytes()


@pytest.mark.parametrize("lie", LIES)
def test_every_lie_is_caught_by_name(honest: Forger, lie: str) -> None:
    change, check = LIES[lie]
    if check == "seal.timestamp":
        pytest.importorskip("rfc3161_client")  # without it, a token is named as not looked at
    change(honest)
    found = _failure(honest.packed())
    # With a log, what was found is held against its digest before it is recomputed.
    assert found == check or (found == "runs.ended" and check.split(".")[0] in _LATER), lie


_LATER = ("scores", "verdicts", "counts", "page")


def _unlogged(forger: Forger) -> None:
    """A seal that never spoke of a log, and everything linked and signed anew under it."""
    _no_log(forger)
    forger.edit(SEAL, lambda seal: seal.update(logged=False))
    forger.files[SEAL_NOTE] = sign_note(seal_text(forger.files[SEAL]), [forger.key])
    forger.relink()


@pytest.mark.slow
@pytest.mark.parametrize(
    "lie", [name for name, (_, check) in LIES.items() if check.split(".")[0] in _LATER]
)
def test_without_a_log_it_is_the_recomputation_that_catches_it(honest: Forger, lie: str) -> None:
    change, check = LIES[lie]
    _unlogged(honest)
    change(honest)
    assert _failure(honest.packed()) == check


def _of_other_code(forger: Forger) -> None:
    """A seal that says it was made with other code, which its owner can always write."""
    forger.edit(
        SEAL, lambda seal: seal["code"]["modules"].update({"ragwitness.core.types": "00" * 32})
    )
    _unlogged(forger)


@pytest.mark.parametrize(
    "lie", ["warnings left out", "a reason edited", "a p-value edited", "a verdict edited"]
)
def test_other_code_is_no_cover_for_a_lie(honest: Forger, lie: str) -> None:
    _of_other_code(honest)
    LIES[lie][0](honest)
    found = judged(honest.packed())
    assert (found.outcome, "with other code" in found.why) == ("inconclusive", True)


def test_other_code_may_word_its_figures_otherwise_and_that_is_said(honest: Forger) -> None:
    _of_other_code(honest)

    def reworded(result: dict) -> None:
        result["summary"]["calibration"]["power"]["told"] = "Put otherwise."

    honest.edit(RESULT, reworded)
    found = judged(honest.packed())
    assert found.outcome == "pass"
    assert any("the figures alone were compared" in line for line in found.uncovered)


def _capped(forger: Forger) -> None:
    """A cap is said to have refused a question, whose score is kept all the same."""
    asked = forger.rows(ANSWERS_FILE)[0]["asked"]
    _relinked(lambda one: one.edit(ANSWERS_FILE, lambda rows: rows.pop(0)))(forger)

    def change(rows: list) -> None:
        found = next(r for r in rows if [r["stage"], r["document"]] == asked[1:3])
        found["capped"] = True

    forger.edit(ROWS, change)


def _stopped(forger: Forger) -> None:
    """The same, with a result that names a cap; none was sealed."""
    _capped(forger)
    forger.edit(RESULT, lambda one: one["summary"]["spent"].update(stopped_by="query"))


UNLOGGED = {
    "an answer dropped for a cap that nobody names": (_capped, "counts.cap"),
    "an answer dropped for a cap that was not sealed": (_stopped, "counts.cap"),
    "an answer changed, and all linked anew": (_relinked(_answer), "scores"),
    "an answer dropped, and all linked anew": (_relinked(_drop_answer), "scores.unanswered"),
}


@pytest.mark.parametrize("lie", UNLOGGED)
def test_answers_that_were_linked_anew_give_other_scores(honest: Forger, lie: str) -> None:
    change, check = UNLOGGED[lie]
    _unlogged(honest)
    change(honest)
    assert _failure(honest.packed()) == check


# What no pack can show by itself, and what shows it.


def _another_seal(forger: Forger) -> None:
    """Everything made anew, long after the answers, with a friendlier level."""
    _unlogged(forger)
    forger.edit(SEAL, lambda seal: seal.update(begun="2020-01-01T00:00:00+00:00"))
    forger.files[SEAL_NOTE] = sign_note(seal_text(forger.files[SEAL]), [forger.key])
    forger.relink()


def test_a_seal_made_afterwards_is_shown_by_the_one_that_was_told_before(honest: Forger) -> None:
    before = verify_pack(honest.packed())
    told = next(c.detail for c in before.checks if c.name == "seal.note").removeprefix("SHA-256 ")
    _another_seal(honest)
    assert _failure(honest.packed()) == "pass"  # not catchable by the pack alone
    assert _failure(honest.packed(), PackKnown(seal=told)) == "seal.digest"
    alone = verify_pack(honest.packed())
    assert any("the signer says so" in line for line in alone.uncovered)
    assert any("thrown away" in line for line in alone.uncovered)


def test_a_pack_by_another_key_is_shown_by_the_key_that_was_told(honest: Forger) -> None:
    _no_log(honest)
    honest.edit(SEAL, lambda seal: seal.update(logged=False, key=STRANGER.public.text))
    honest.files[SEAL_NOTE] = sign_note(seal_text(honest.files[SEAL]), [STRANGER])
    honest.relink()
    data = honest.packed(STRANGER)
    assert verify_pack(data).outcome == "inconclusive"  # nothing known, nothing passes
    assert _failure(data) == "pass"  # not catchable by whoever is told the wrong key
    assert _failure(data, PackKnown(key=honest.key.public)) == "seal.key"
    assert _failure(Forger.packed(honest, honest.key)) == "pack.signature"


def test_a_look_dropped_from_the_series_is_shown_by_a_checkpoint(
    place: Path, honest: Forger
) -> None:
    seen = PackKnown(checkpoints=[(place / "seen").read_bytes()])
    assert _failure(honest.packed(), seen) == "pass"
    told = verify_pack(honest.packed(), seen).uncovered
    assert any("of the 2 runs that this key logged, 2 are about these" in line for line in told)
    _forget_first_run(honest)
    assert _failure(honest.packed()) == "pass"  # not catchable without what somebody saw
    assert _failure(honest.packed(), seen) == "runs.split_view"


def test_a_made_up_recording_is_named_as_not_catchable(honest: Forger) -> None:
    """Whoever makes up answers and scores before sealing has a pack like any other."""
    assert any("asking the system again" in line for line in verify_pack(honest.packed()).rests)


# With hidden texts: what can still be caught, and what is named as not looked at.

HIDDEN = {
    "a p-value edited": (_document(p_value=0.001), "verdicts.p_value"),
    "a verdict edited": (_document(verdict="in"), "verdicts.verdict"),
    "counts edited": (_within("counts", **{"in": 6}), "verdicts.counts.in"),
    "alpha moved": (_summary(alpha=0.2), "verdicts.alpha"),
    "a score edited": (_score, "verdicts.score"),
    "the calibration edited": (_within("calibration", n=99), "verdicts.calibration.n"),
    "a budget moved": (_within("spent", max_queries=5), "verdicts.spent.max_queries"),
    "an answer dropped": (_drop_answer, "answers.chain"),
    "answers in another order": (_turn_answers, "answers.chain"),
    "a known-out score left out": (lambda f: f.edit(ROWS, lambda r: r.pop(0)), "units"),
    "the page changed": (_page, "page"),
    "fewer questions": (
        lambda f: f.edit(ROWS, lambda rows: rows[0].update(queries=0)),
        "counts",
    ),
}


def test_the_honest_hidden_pack_is_consistent_and_says_what_it_could_not_do(
    place: Path, hidden: Forger
) -> None:
    data = (place / "hidden.zip").read_bytes()
    found = verify_pack(data)
    assert (found.outcome, found.failures) == ("inconclusive", ())
    assert "the scores of 30 of 30 documents were not recomputed" in found.why
    status = {check.name: check.status for check in found.checks}
    assert (status["likeness"], status["scores"], status["verdicts"]) == (
        "not checked", "not checked", "pass",
    )  # fmt: skip
    # Not one word of a document, a question or an answer is in it.
    words = {word for row in Forger.of(place / "open.zip", place / "auditor.key").rows(TEXTS)
             for word in row["text"].split() if len(word) > 9}  # fmt: skip
    shown = b" ".join(data for name, data in hidden.files.items() if name != REPORT)
    assert len(words) > 50
    assert not [word for word in words if word.encode() in shown]


@pytest.mark.parametrize("lie", HIDDEN)
def test_with_hidden_texts_every_lie_behind_the_scores_is_caught(hidden: Forger, lie: str) -> None:
    change, check = HIDDEN[lie]
    _unlogged(hidden)
    change(hidden)
    assert _failure(hidden.packed()) == check


def test_a_hidden_answer_cannot_be_changed_in_silence_once_runs_are_logged(hidden: Forger) -> None:
    hidden.edit(ANSWERS_FILE, lambda rows: rows[0].update(commitment="22" * 32))
    hidden.relink()
    assert _failure(hidden.packed()) == "runs.ended"
    _unlogged(hidden)
    assert _failure(hidden.packed()) == "inconclusive"  # not catchable: the text is hidden


def test_a_text_that_is_opened_alone_is_the_sealed_one_and_its_score_is_recomputed(
    place: Path, honest: Forger, tmp_path: Path
) -> None:
    out, mine = tmp_path / "one.zip", honest.rows(TEXTS)[0]["id"]
    assert called("seal", place / "run", "-o", out, "--hide-texts", "--open", mine) == 0
    forger = Forger.of(out, place / "auditor.key")
    assert [row["id"] for row in forger.rows(TEXTS) if "text" in row] == [mine]
    found = verify_pack(out.read_bytes())
    assert (found.outcome, found.failures) == ("inconclusive", ())
    assert "29 of 30 documents were not recomputed" in found.why
    # Its score is bound by its answers, although every other one is hidden.
    _unlogged(forger)
    forger.edit(ROWS, lambda rows: next(r for r in rows if r["document"] == mine).update(value=9.0))
    assert _failure(forger.packed()) == "scores"
    _relinked(_swap)(forger)
    assert _failure(forger.packed()) == "texts.root"


# Without the key: whatever is changed on the way.


def _signed(files: dict[str, bytes], by: Forger) -> dict[str, bytes]:
    return {**files, NOTE: sign_note(pack_text(files[MANIFEST]), [by.key])}


def signed_again(forger: Forger) -> bytes:
    """Return a pack with its list of files as it was changed, signed by its own key."""
    files = {**forger.files, MANIFEST: json.dumps(forger.manifest).encode()}
    return pack(_signed(files, forger))


def test_a_zip_is_hostile_input(place: Path, honest: Forger) -> None:
    data = (place / "open.zip").read_bytes()
    files = _signed({**honest.files, MANIFEST: json.dumps(honest.manifest).encode()}, honest)

    def zipped(method: int = zipfile.ZIP_STORED, **more: bytes) -> bytes:
        out = BytesIO()
        with zipfile.ZipFile(out, "w", method) as archive:
            for name in sorted({**files, **more}):
                archive.writestr(name, {**files, **more}[name])
        return out.getvalue()

    twice = bytearray(data)
    place_of = data.index(b"result.json")
    twice[place_of : place_of + 11] = b"report.json"
    cases = {
        "pack.zip": b"PK\x03\x04 and nothing more",
        "pack.canonical": zipped(),
        "pack.compressed": zipped(zipfile.ZIP_DEFLATED, **{"bomb.json": bytes(10_000_000)}),
        "pack.name": pack({**files, "Q_Q_Q": b""}).replace(b"Q_Q_Q", b"../up"),
        "pack.extra": pack({**files, "notes.txt": b"read me"}),
        "pack.missing": pack({k: v for k, v in files.items() if k != ROWS}),
        "pack.digest": pack({**files, RESULT: files[RESULT].replace(b"0.0", b"0.1", 1)}),
        "pack.member_size": pack({**files, NOTE: bytes(2 << 20)}),
        "pack.note": pack({**files, MANIFEST: b'{"version":1}\n'}),
        "pack.signature": pack({**files, NOTE: sign_note(pack_text(files[MANIFEST]), [STRANGER])}),
        "pack.json": pack(_signed({**files, MANIFEST: b'{"version":1,"version":1}\n'}, honest)),
    }
    for check, lie in cases.items():
        assert _failure(lie) == check, check
    assert _failure(bytes(twice)).startswith("pack.")
    assert _failure(b"") == "pack.zip"
    for name in ("../evil", "/etc/passwd", "a//b"):
        assert _failure(zipped(**{name: b"x"})) in ("pack.name", "pack.canonical")


def test_a_pack_of_another_version_says_so_first(honest: Forger) -> None:
    honest.manifest["version"] = "ragwitness/pack/v9"
    found = verify_pack(signed_again(honest))
    assert found.failures[0].failure == "pack.version"
    assert "ragwitness/pack/v9" in found.why
    honest.edit(SEAL, lambda seal: seal.update(version="ragwitness/seal/v9"))
    assert _failure(honest.packed()) == "pack.version"


def test_a_method_that_is_not_here_is_not_checked_and_no_lie(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A copy: an entry that is put back stands last, and tables are in the order of the entries.
    known = {name: audit for name, audit in AUDITS.items() if name != "s2mia"}
    monkeypatch.setattr(AUDITS, "_entries", known)
    found = judged((place / "open.zip").read_bytes())
    assert (found.outcome, found.failures) == ("inconclusive", ())
    assert "the method 's2mia' is not in this version" in found.why
    status = {check.name: check.status for check in found.checks}
    assert (status["answers"], status["scores"], status["verdicts"]) == (
        "pass", "not checked", "not checked",
    )  # fmt: skip


def test_every_byte_of_the_way_is_covered(place: Path) -> None:
    """A bit turned anywhere in the archive is found; every 997th byte, and the ends."""
    data = (place / "open.zip").read_bytes()
    for at in {0, len(data) - 1, *range(0, len(data), 997)}:
        turned = bytearray(data)
        turned[at] ^= 1
        assert _failure(bytes(turned)).startswith("pack."), at


def test_rows_of_a_forger_and_of_a_seal_agree(honest: Forger) -> None:
    """The forger's own tools are right: without that the tests above show nothing."""
    seal = json.loads(honest.files[SEAL])
    rows = honest.rows(ROWS)
    assert seal["units"]["digest"] == units_digest([(r["stage"], r["document"]) for r in rows])
    assert struct.calcsize("I") == 4
    assert root_of([]) != seal["texts"]["root"]
