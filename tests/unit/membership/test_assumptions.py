"""Calibration documents of another kind are noticed, named, and accuse nobody."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import pytest

from ragwitness.core.types import Decision, Document, Verdict
from ragwitness.membership.assumptions import (
    PlanLikeness,
    beforehand,
    calibration_of,
    doubts,
    likeness,
    take_back,
)
from ragwitness.membership.plan import AuditPlan, choose_reference, without_drafts
from ragwitness.text.sample import load_sample


@pytest.fixture(scope="module")
def kinds() -> dict[str, list[Document]]:
    """The packaged corpus by kind: the first word says which."""
    found: dict[str, list[Document]] = {}
    for document in load_sample():
        found.setdefault(document.text.split()[0], []).append(document)
    for documents in found.values():
        random.Random(0).shuffle(documents)
    return {name: part for name, part in found.items() if len(part) >= 50}


def _halves_exchanged(text: str) -> str:
    words = text.split()
    return " ".join([*words[len(words) // 2 :], *words[: len(words) // 2]])


def test_versions_of_few_documents_do_not_calibrate_for_many() -> None:
    documents = [one.text.split() for one in load_sample()]
    rng = random.Random(4)
    rng.shuffle(documents)
    # 15 documents of other kinds in four versions each, a fifth of the words replaced.
    known = []
    for n, words in enumerate(documents[:15]):
        for version in range(4):
            text = [rng.choice(documents[99]) if rng.random() < 0.2 else one for one in words]
            known.append(Document(f"{n}-{version}", " ".join(text)))
    mine = [Document(f"m{n}", " ".join(words)) for n, words in enumerate(documents[15:40])]
    assert len(without_drafts(tuple(known))) == 60
    found = likeness(mine, known)
    assert found.unlike
    assert any("most similar other text" in clause for clause in found.differences)
    others = [Document(str(n), " ".join(words)) for n, words in enumerate(documents[40:99])]
    assert not likeness(mine, others).unlike


@pytest.mark.slow
def test_halves_of_one_kind_are_alike(kinds) -> None:
    found = [likeness(documents[:25], documents[25:]) for documents in kinds.values()]
    # At level .01 at most 2 of 12 with probability .9998.
    assert sum(one.unlike for one in found) <= 2
    assert all(one.unlike or one.differences == () for one in found)


def test_two_kinds_differ_and_what_differs_is_named(kinds) -> None:
    one, other = list(kinds.values())[:2]
    found = likeness(one[:25], other[:50])
    assert found.unlike
    assert found.auc > 0.95
    assert "calibration documents differ from yours" in found.told
    assert found.differences


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: f"{text} {text} {text}", "times as long"),
        (lambda text: " ".join(text.split()[::3]), "times as short"),
        (str.upper, "capital letters"),
        (lambda text: f"Source: archive. {text}", "“source …” begins 100% of them"),
        (lambda text: text.replace(" ", "\n", 12), "line breaks"),
        (lambda text: f"{text} Filed in 1987.", "1987"),
        (lambda text: text.replace(" ", "  "), "white space ("),
        (lambda text: text.replace(" ", "\u00a0"), "white space other than blanks"),
        (lambda text: text.replace(" ", "\t" * 30, 1), "longest gap between words"),
        (lambda text: text.replace(",", ";"), "“;” is in"),
        (_halves_exchanged, "first half of"),
    ],
    ids=[
        *("longer", "shorter", "capitals", "a source's mark", "lines", "another year"),
        *("doubled blanks", "no-break spaces", "a gap", "another mark", "halves"),
    ],
)
def test_known_out_texts_that_differ_in_one_way_are_noticed(kinds, change, says) -> None:
    documents = next(iter(kinds.values()))
    changed = [replace(one, text=change(one.text)) for one in documents[30:]]
    found = likeness(documents[:25], changed)
    assert found.unlike
    assert any(says in clause for clause in found.differences)


def test_the_same_documents_give_the_same_answer_in_any_process(kinds) -> None:
    one, other = list(kinds.values())[:2]
    assert likeness(tuple(one[:25]), tuple(other[:25])) == likeness(one[:25], other[:25])


def test_texts_without_a_word_are_compared_too() -> None:
    dots = [Document(f"d{i}", "…" * (i + 1)) for i in range(30)]
    assert not likeness(dots[::2], dots[1::2]).unlike


def _verdicts() -> list[Verdict]:
    decisions = (Decision.IN, Decision.OUT, Decision.INCONCLUSIVE)
    return [Verdict(d.value, d, 0.01, 1.0, 1) for d in decisions]


def _plan(kinds, **more) -> AuditPlan:
    one, other = list(kinds.values())[:2]
    return AuditPlan(tuple(one[:25]), tuple(other[:50]), **more)


def test_a_verdict_that_rests_on_unlike_documents_is_taken_back(kinds) -> None:
    plan = _plan(kinds)
    alike = likeness(plan.documents, plan.known_out)
    found = take_back(plan, PlanLikeness(alike), _verdicts(), {})
    assert [one.decision.value for one in found] == ["inconclusive", "out", "inconclusive"]
    assert "differ from yours" in found[0].reason
    # Known-in documents of another kind take back the verdict out.
    plan = replace(plan, known_in=plan.known_out[:50], known_out=())
    inside = likeness(plan.documents, plan.known_in)
    both = take_back(plan, PlanLikeness(alike, inside), _verdicts(), {})
    assert [one.decision.value for one in both] == ["inconclusive"] * 3


def test_out_says_so_where_the_known_in_documents_could_not_be_tested(kinds) -> None:
    """One document beside 60 of another kind: nobody can tell that they are."""
    one, other = list(kinds.values())[:2]
    plan = AuditPlan(tuple(one[:1]), tuple(one[1:50]), tuple(other[:50]))
    seen = PlanLikeness.of(plan, choose_reference(plan.known_out, False, ()))
    assert not seen.known_in.tested
    said = take_back(plan, seen, _verdicts(), {})[1]
    assert said.decision is Decision.OUT
    assert said.reason.startswith("not exact: too few documents to test")
    reference = choose_reference(plan.known_out, False, ())
    calibration = calibration_of(plan, reference, [0.0] * 49, seen.reference, seen.odd)
    assert "known-in documents and 1 in question). So verdicts out are not exact." in " ".join(
        doubts(plan, calibration, 1, seen)
    )


def test_who_insists_keeps_verdicts_that_are_not_called_exact(kinds) -> None:
    plan = _plan(kinds, accept_unlike=True)
    reference = choose_reference(plan.known_out, False, ())
    calibration = _calibration(plan, reference, [0.0] * 97 + [1.0, 2.0, 3.0])
    assert not calibration.exact
    assert calibration.largest_tie == 97
    seen = PlanLikeness(calibration.likeness)
    assert take_back(plan, seen, _verdicts(), {}) == tuple(_verdicts())
    assert "do not accuse" in doubts(plan, calibration, 40, seen)[0]


def test_unlike_sets_are_doubtful_before_the_first_query_unless_one_insists(kinds) -> None:
    plan = _plan(kinds)
    reference = choose_reference(plan.known_out, False, ())
    told, doubtful = beforehand(plan, reference)
    assert doubtful
    assert len(told) == 2
    assert not beforehand(replace(plan, accept_unlike=True), reference)[1]
    # Generated documents nobody has vouched for: said with the verdicts, and no reason to stop.
    generated = choose_reference((), False, plan.known_out)
    remarks, doubtful = beforehand(replace(plan, known_out=()), generated)
    assert not doubtful
    assert "of this package stand in" in remarks[-1]


def test_one_document_by_itself_is_compared_and_its_weakness_said(kinds) -> None:
    one, other = list(kinds.values())[:2]
    assert "cannot be tested" in likeness(one[:1], other[:50]).told
    rng = random.Random(0)
    numbers = [" ".join(str(rng.randrange(10**4)) for _ in range(60)) for _ in range(110)]
    ledger = [Document(f"k{i}", text) for i, text in enumerate(numbers)]
    assert likeness(one[:1], ledger).unlike
    assert not likeness(ledger[:1], ledger[1:]).unlike
    assert "so few can hardly show" in likeness(ledger[:1], ledger[1:]).told


def _calibration(plan, reference, scores):
    seen = PlanLikeness.of(plan, reference)
    return calibration_of(plan, reference, scores, seen.reference, seen.odd)


def _dense(alphabet: str, n: int, seed: int) -> list[Document]:
    rng = random.Random(seed)
    texts = ("\uff0c".join("".join(rng.choices(alphabet, k=9)) for _ in range(8)) for _ in range(n))
    return [Document(f"{seed}-{i}", text) for i, text in enumerate(texts)]


def test_scripts_without_spaces_are_compared_by_their_letters() -> None:
    # Read as words, a clause is a word that no other text holds: nothing would ever be unlike.
    medical = "".join(map(chr, range(0x4E00, 0x4E78)))
    legal = "".join(map(chr, range(0x5E00, 0x5E78)))
    assert likeness(_dense(medical, 20, 1), _dense(legal, 60, 2)).unlike
    assert not likeness(_dense(medical, 20, 1), _dense(medical, 60, 3)).unlike
    thai = "".join(map(chr, range(0x0E01, 0x0E2F)))
    assert likeness(_dense(thai[:20], 20, 1), _dense(thai[20:], 60, 2)).unlike


@pytest.mark.parametrize("documents", [1, 2, 4])
def test_what_hardly_can_be_tested_is_not_called_exact(kinds, documents: int) -> None:
    texts = next(iter(kinds.values()))
    plan = AuditPlan(tuple(texts[:documents]), known_out=tuple(texts[10:]))
    found = _calibration(plan, choose_reference(plan.known_out, False, ()), [0.1, 0.2, 0.3])
    assert not found.exact
    assert "ested" in found.note
    assert "Checked" not in found.note


def test_copies_are_one_document(kinds) -> None:
    texts = next(iter(kinds.values()))
    mine, known = texts[:15], texts[15:]
    copies = [Document(f"copy-{n}", mine[0].text.upper()) for n in range(30)]
    assert likeness([*mine, *copies], known) == likeness(mine, known)


_NOTICE = " ".join(f"standing{i} notice{i} of the publisher" for i in range(16))


@pytest.mark.parametrize(
    ("mine", "theirs", "says"),
    [
        (lambda t: f"{t[:40]} {_NOTICE} {t[40:]}", lambda t: f"{t} {_NOTICE}", "first 600 char"),
        (lambda t: f"{t[:900]} {_NOTICE} {t[900:]}", lambda t: f"{t} {_NOTICE}", "first 2048 char"),
        (lambda t: f"{t} {_NOTICE}", lambda t: f"{t} {_NOTICE}", None),
    ],
    ids=["early", "later", "alike"],
)
def test_the_same_words_elsewhere_are_noticed_where_methods_stop_reading(mine, theirs, says):
    rng = random.Random(1)
    words = [f"word{i}" for i in range(60)]
    texts = [" ".join(rng.choice(words) for _ in range(380)) for _ in range(60)]
    documents = [Document(str(i), text) for i, text in enumerate(texts)]
    asked = [replace(one, text=mine(one.text)) for one in documents[:25]]
    found = likeness(asked, [replace(one, text=theirs(one.text)) for one in documents[25:]])
    assert found.unlike == (says is not None)
    assert says is None or says in found.told


def test_gaps_that_both_sets_have_are_no_difference(kinds) -> None:
    gapped = [
        replace(one, text="Office\n" + " " * 200 + one.text) for one in next(iter(kinds.values()))
    ]
    assert not likeness(gapped[:20], gapped[20:]).unlike


@dataclass
class _Reads:
    """A configuration of a method that says how much of a text is read."""

    max_chars: int | None = None
    max_words: int | None = None


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (_Reads(max_chars=300), "first 300 characters"),
        (_Reads(max_words=60), "first 60 words"),
        (_Reads(), None),
        (_Reads(max_chars=1200), None),
        (None, None),
    ],
)
def test_words_are_compared_where_the_method_stops_reading(config, says) -> None:
    rng = random.Random(4)
    words = [f"word{i}" for i in range(60)]
    texts = [[rng.choice(words) for _ in range(300)] for _ in range(80)]
    notice = [f"standing{i}" for i in range(6)]
    documents = [
        Document(str(n), " ".join([*text[:at], *notice, *text[at:]]))
        for n, text in enumerate(texts)
        for at in [20 if n < 25 else 65]  # both within the first 600 characters
    ]
    found = likeness(documents[:25], documents[25:], config)
    assert found.unlike == (says is not None)
    assert says is None or says in found.told


def test_an_order_is_compared_as_its_own_method_reads() -> None:
    from ragwitness.membership.method_registry import configure
    from ragwitness.membership.prepared import PreparedAudit

    rng = random.Random(5)
    texts = [[f"word{rng.randrange(60)}" for _ in range(300)] for _ in range(80)]
    documents = [
        Document(str(n), " ".join([*text[:at], *(f"standing{i}" for i in range(6)), *text[at:]]))
        for n, text in enumerate(texts)
        for at in [20 if n < 25 else 65]
    ]
    plan = AuditPlan(tuple(documents[:25]), tuple(documents[25:]))
    short = configure("passages", {"max_chars": "200"})
    assert "differ from yours" in " ".join(
        PreparedAudit("", plan, "passages", short).beforehand()[0]
    )
    whole = configure("passages", {"max_chars": "4000"})
    assert "differ from yours" not in " ".join(
        PreparedAudit("", plan, "passages", whole).beforehand()[0]
    )
