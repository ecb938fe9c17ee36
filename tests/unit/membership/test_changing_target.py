"""A target that changes while it is asked, and holds nothing: nobody is accused."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import replace

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, Capability, Decision, Document, Probe, Query, Score
from ragwitness.membership.collection import run_collection, undecidable
from ragwitness.membership.plan import AuditPlan
from ragwitness.membership.results.audit import AuditResult
from ragwitness.membership.run import run_audit
from ragwitness.runner.budget import Budget
from ragwitness.runner.rate_limiter import RateLimiter
from ragwitness.text.sample import load_sample


@pytest.fixture(autouse=True)
def _drawn_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Orders that nobody can foresee, but the same ones each time the tests run."""
    rng = random.Random(5)
    monkeypatch.setattr(
        "ragwitness.runner.score_store.secrets.token_hex", lambda n: f"{rng.getrandbits(8 * n):x}"
    )


class _Turning:
    """Says no to so many questions and yes to all others, whatever it is asked."""

    name = "turning"
    capabilities = frozenset({Capability.TEXT})

    def __init__(self, after: int) -> None:
        self.left = after

    async def ask(self, query: Query) -> Answer:
        self.left -= 1
        return Answer("no" if self.left >= 0 else "yes")

    async def close(self) -> None:
        pass


class _Asks:
    """One question a document, whose answer is its score."""

    name = "asks"
    requires = frozenset({Capability.TEXT})

    def probe(self, document: Document) -> Probe:
        (answer,) = yield [Query(document.text)]
        return Score(float(answer.text == "yes"))


def _plan(mine: int, others: int) -> AuditPlan:
    texts = load_sample()
    return AuditPlan(tuple(texts[:mine]), known_out=tuple(texts[mine : mine + others]), in_flight=1)


@pytest.mark.parametrize("after", [0, 20, 60, 100, 103, 110, 119])
def test_no_document_is_accused_because_the_target_changed(after: int, monkeypatch) -> None:
    monkeypatch.setattr(random, "SystemRandom", lambda: random.Random(after))
    result = asyncio.run(run_audit(_plan(20, 100), _Turning(after), _Asks()))
    assert all(one.decision is not Decision.IN for one in result.verdicts)
    # Asked one kind after the other, all in question would have scored above all others at 100.
    p_values = [one.p_value or 1.0 for one in result.verdicts]
    assert sum(p <= 0.05 for p in p_values) <= 3


@pytest.mark.slow
def test_drift_decides_for_a_collection_no_oftener_than_the_level() -> None:
    """Nothing is held; scores rise step by step or at once (all of it, 2,000 times: test_owner)."""

    class Drifting(_Turning):
        turns: int | None = None

        async def ask(self, query: Query) -> Answer:
            self.left += 1
            rise = self.left / 160 if self.turns is None else self.left > self.turns
            return Answer(str(rise + random.Random(query.prompt).gauss(0, 1)))

    class Reads(_Asks):
        def probe(self, document: Document) -> Probe:
            (answer,) = yield [Query(document.text)]
            return Score(float(answer.text))

    wrong = 0
    for turns in (None, 20, 80, 100, 140):
        for seed in range(4):
            target = Drifting(0)
            target.turns = turns
            asked = run_collection(_plan(60, 100), target, Reads(), seed=seed)
            wrong += asyncio.run(asked).decided
    assert wrong <= 4  # of 20 at .05 more with probability .003


def test_a_change_that_is_over_again_decides_no_collection() -> None:
    class Glitch(_Turning):
        async def ask(self, query: Query) -> Answer:
            self.left += 1
            return Answer("yes" if first <= self.left < first + 8 else "no")

    plan, wrong = replace(_plan(60, 100), in_flight=4), 0
    for first in range(0, 150, 12):
        wrong += asyncio.run(run_collection(plan, Glitch(0), _Asks(), seed=first)).decided
    assert wrong <= 3  # of 13 at .05 more with probability .003


@pytest.mark.parametrize(("mine", "known"), [(4, 100), (60, 4)])
def test_a_collection_too_small_to_be_compared_decides_nothing(mine: int, known: int) -> None:
    plan = _plan(mine, known)
    held = {one.text for one in plan.documents}

    class Holds(_Turning):
        async def ask(self, query: Query) -> Answer:
            return Answer("yes" if query.prompt in held else "no")

    result = asyncio.run(run_collection(plan, Holds(0), _Asks()))
    assert result.log10_e > 1.3 or known < 5
    assert not result.decided
    assert f"there are {mine} of the collection and {known} known" in result.caution
    assert undecidable(plan) == result.caution


def test_a_target_that_stays_the_same_is_not_called_changed() -> None:
    class Holds(_Turning):
        async def ask(self, query: Query) -> Answer:
            return Answer("yes" if query.prompt in held else "no")

    plan = _plan(60, 100)
    held = {one.text for one in plan.documents}
    result = asyncio.run(run_collection(plan, Holds(0), _Asks()))
    assert result.decided
    assert result.caution is None


def test_documents_without_an_answer_are_left_out_of_the_bets_on_both_sides() -> None:
    plan = _plan(60, 100)
    held = {one.text for one in plan.documents}

    class Refuses(_Turning):
        async def ask(self, query: Query) -> Answer:
            self.left += 1
            if self.left % 2:
                return Answer("", error="429 daily limit")
            return Answer("yes" if query.prompt in held else "no")

    class Asks(_Asks):
        def probe(self, document: Document) -> Probe:
            (answer,) = yield [Query(document.text)]
            return Score(None if answer.error else float(answer.text == "yes"), reason=answer.error)

    result = asyncio.run(run_collection(plan, Refuses(0), Asks()))
    assert result.decided
    assert result.unscorable > 2
    assert len(result.path) == result.known_out + result.documents_asked - result.unscorable


def test_a_cap_leaves_a_collection_undecided_and_a_higher_one_resumes(tmp_path) -> None:
    plan = _plan(60, 100)
    held = {one.text for one in plan.documents}

    class Holds(_Turning):
        async def ask(self, query: Query) -> Answer:
            return Answer("yes" if query.prompt in held else "no")

    def run(cap: int | None):
        with RateLimiter.of_run(tmp_path, Budget(queries=cap), 1) as limiter:
            audit = run_collection(plan, Holds(0), _Asks(), run=tmp_path, limiter=limiter)
            return asyncio.run(audit)

    result = run(8)
    assert not result.decided
    assert result.spent.stopped_by == "query"
    assert len(result.path) == 8
    again = run(None)  # the same command with a higher cap resumes
    assert again.decided
    assert again.caution is None


def _resumed(plan: AuditPlan, target: _Turning, run, cap: int | None = None) -> AuditResult:
    with RateLimiter.of_run(run, Budget(queries=cap), 1) as limiter:
        audit = run_audit(plan, target, _Asks(), run=run, limiter=limiter, identity="asks")
        return asyncio.run(audit)


def test_other_documents_in_the_folder_of_a_finished_run_are_not_accused(tmp_path) -> None:
    plan = _plan(20, 100)
    _resumed(plan, _Turning(10**6), tmp_path)
    others = tuple(load_sample()[120:140])
    # The target says yes to everybody by now, and the command is repeated.
    for _ in range(3):
        result = _resumed(replace(plan, documents=others), _Turning(0), tmp_path)
        assert result.count(Decision.IN) == 0
        assert not result.calibration.exact
        assert "asked at another time" in result.verdicts[0].reason
        assert any("take a fresh --run folder" in one for one in result.warnings)
    (tmp_path / "finished.jsonl").unlink()  # the journal knows it, too
    assert not _resumed(replace(plan, documents=others), _Turning(0), tmp_path).calibration.exact
    # What was asked in one random order is exact again, those documents or a part of them.
    assert _resumed(plan, _Turning(0), tmp_path).calibration.exact
    assert _resumed(
        replace(plan, documents=plan.documents[:9]), _Turning(0), tmp_path
    ).calibration.exact
    fresh = _resumed(replace(plan, documents=others), _Turning(0), tmp_path / "fresh")
    assert fresh.calibration.exact


def test_an_audit_that_was_interrupted_stays_exact(tmp_path) -> None:
    plan = _plan(20, 100)
    assert _resumed(plan, _Turning(10**6), tmp_path, cap=70).spent.stopped_by == "query"
    result = _resumed(plan, _Turning(10**6), tmp_path)
    assert result.calibration.exact
    assert any("70 of 120 answers were kept" in one for one in result.warnings)


@pytest.mark.parametrize("others", [100, pytest.param(300, marks=pytest.mark.slow)])
def test_one_document_added_to_a_finished_folder_is_not_accused(tmp_path, others: int) -> None:
    plan = _plan(5, others)
    _resumed(replace(plan, documents=plan.documents[:4]), _Turning(10**6), tmp_path)
    for _ in range(2):
        result = _resumed(plan, _Turning(0), tmp_path)
        assert result.count(Decision.IN) == 0
        assert not result.calibration.exact


def test_a_document_that_failed_and_is_asked_alone_later_is_not_accused(tmp_path) -> None:
    plan = _plan(1, 100)

    class Fails(_Turning):
        async def ask(self, query: Query) -> Answer:
            mine = query.prompt == plan.documents[0].text
            return Answer("", error="too long") if mine else Answer("no")

    class Asks(_Asks):
        def probe(self, document: Document) -> Probe:
            (answer,) = yield [Query(document.text)]
            return Score(None if answer.error else float(answer.text == "yes"), reason=answer.error)

    for target in (Fails(0), _Turning(0), _Turning(0)):
        result = asyncio.run(run_audit(plan, target, Asks(), run=tmp_path))
        assert result.count(Decision.IN) == 0
    assert result.verdicts[0].p_value == pytest.approx(1 / 101)
    assert "asked at another time" in result.verdicts[0].reason


@pytest.mark.slow
def test_an_audit_of_several_workers_that_was_interrupted_twice_stays_exact(tmp_path) -> None:
    plan = replace(_plan(20, 100), in_flight=6)
    held = {one.text for one in plan.documents[:10]}

    class Holds(_Turning):
        async def ask(self, query: Query) -> Answer:
            self.left -= 1
            await asyncio.sleep(random.Random(query.prompt).random() / 1000)
            if not self.left:
                raise KeyboardInterrupt
            return Answer("yes" if query.prompt in held else "no")

    for after in (40, 40):
        with pytest.raises(KeyboardInterrupt):
            _resumed(plan, Holds(after), tmp_path)
    for _ in range(2):
        result = _resumed(plan, Holds(10**6), tmp_path)
        assert result.calibration.exact
        decided = {one.document for one in result.verdicts if one.decision is Decision.IN}
        assert decided == {one.id for one in plan.documents[:10]}
        assert not any("Not exact" in one for one in result.warnings)


def test_answers_of_before_starts_were_kept_are_of_one_unknown_start(tmp_path) -> None:
    plan = _plan(6, 100)
    _resumed(replace(plan, documents=plan.documents[:5]), _Turning(10**6), tmp_path)
    for name in ("answers.jsonl", "finished.jsonl"):
        rows = [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]
        old = [{k: v for k, v in row.items() if k not in ("start", "starts")} for row in rows]
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in old))
    earlier = replace(plan, documents=plan.documents[:5])
    assert _resumed(earlier, _Turning(0), tmp_path).calibration.exact
    assert not _resumed(plan, _Turning(0), tmp_path).calibration.exact


@pytest.mark.slow
def test_the_order_of_asking_is_another_each_time_and_follows_from_no_count() -> None:
    """Whoever is asked last scores highest; with 108 and 5 that was always one in question."""
    asked: list[str] = []

    class Notes(_Turning):
        async def ask(self, query: Query) -> Answer:
            asked.append(query.prompt)
            return Answer("no")

    plan = _plan(5, 108)
    mine = {one.text for one in plan.documents}
    orders = []
    for _ in range(12):
        asked.clear()
        asyncio.run(run_audit(plan, Notes(0), _Asks()))
        orders.append(tuple(asked))
    assert len(set(orders)) == 12
    assert sum(order[-1] in mine for order in orders) <= 6  # more by chance once in a million


@pytest.mark.slow
@pytest.mark.parametrize("others", [10, 60])
def test_another_collection_in_the_same_folder_is_not_decided(tmp_path, others: int) -> None:
    texts = load_sample()
    plan = AuditPlan(tuple(texts[:60]), known_out=tuple(texts[120 : 120 + 100]), in_flight=1)
    held = {one.text for one in plan.documents}

    class Holds(_Turning):
        async def ask(self, query: Query) -> Answer:
            return Answer("yes" if query.prompt in held else "no")

    first = asyncio.run(run_collection(plan, Holds(0), _Asks(), run=tmp_path))
    assert first.decided
    other = replace(plan, documents=tuple(texts[60 : 60 + others]))
    for _ in range(2):
        result = asyncio.run(run_collection(other, _Turning(0), _Asks(), run=tmp_path))
        assert not result.decided
        assert "take a fresh --run folder" in result.caution
    again = asyncio.run(run_collection(plan, _Turning(0), _Asks(), run=tmp_path))
    assert again.decided
    assert again.caution is None


def test_documents_asked_at_a_lower_level_later_decide_no_collection(tmp_path) -> None:
    plan = _plan(60, 100)
    held = {one.text for one in plan.documents[:60]}

    class Holds(_Turning):
        async def ask(self, query: Query) -> Answer:
            return Answer("yes" if query.prompt in held else "no")

    assert asyncio.run(run_collection(plan, Holds(0), _Asks(), run=tmp_path)).decided
    lower = replace(plan, alpha=0.001)
    result = asyncio.run(run_collection(lower, _Turning(0), _Asks(), run=tmp_path))
    assert not result.decided


class _Opening(_Asks):
    """Reads no further than the beginning, and asks for the rest of what begins so."""

    def probe(self, document: Document) -> Probe:
        (answer,) = yield [Query(document.text[:120])]
        return Score(float(answer.text == "yes"))


def test_texts_that_differ_only_further_on_have_no_verdict(tmp_path) -> None:
    plan = _plan(20, 100)
    first, second = plan.documents[:2]
    known = plan.known_out[0]
    twin = Document("twin", first.text[:120] + second.text)
    late = Document("late", known.text[:120] + second.text)
    mine = replace(plan, documents=(*plan.documents[:2], twin, late))

    class Holds(_Turning):
        async def ask(self, query: Query) -> Answer:
            held = (first.text, second.text)
            return Answer("yes" if any(one.startswith(query.prompt) for one in held) else "no")

    result = asyncio.run(run_audit(mine, Holds(0), _Opening(), run=tmp_path))
    reasons = {one.document: (one.decision.value, one.reason) for one in result.verdicts}
    said = "asks the same question as {}, whose text differs further on"
    assert reasons[first.id] == ("inconclusive", said.format("twin"))
    assert reasons["twin"] == ("inconclusive", said.format(first.id))
    assert reasons["late"] == ("inconclusive", said.format(known.id))
    assert reasons[second.id][0] == "in"  # one test, and not one of four
    assert result.verdicts[1].q_value == result.verdicts[1].p_value
    assert result.calibration.n == 99
    assert not any("earlier start" in one for one in result.warnings)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(" ", "  ", 1),
        lambda text: "\u200b" + text,
        lambda text: text[:40].swapcase() + text[40:],
        lambda text: text.replace(" ", "\n").replace(".", " ."),
    ],
    ids=["a space", "a mark that nobody sees", "case", "lines"],
)
def test_texts_that_differ_further_on_and_in_spacing_or_case_have_no_verdict(change) -> None:
    plan = _plan(20, 100)
    first = plan.documents[0]
    twin = Document("twin", change(first.text + " All claims are waived."))
    mine = replace(plan, documents=(*plan.documents, twin))

    class Holds(_Turning):
        async def ask(self, query: Query) -> Answer:
            said = "".join(query.prompt.casefold().split())[1:60]
            return Answer("yes" if said in "".join(first.text.casefold().split()) else "no")

    class Opening(_Asks):
        def probe(self, document: Document) -> Probe:
            (answer,) = yield [Query(" ".join(document.text.split()[:12]))]
            return Score(float(answer.text == "yes"))

    result = asyncio.run(run_audit(mine, Holds(0), Opening()))
    found = {one.document: one for one in result.verdicts}
    for name in (first.id, "twin"):
        assert found[name].decision is Decision.INCONCLUSIVE
        assert "asks the same question as" in found[name].reason


@pytest.mark.parametrize(("one", "other"), [("1.5 mg", "15 mg"), ("+250", "-250"), ("a*b", "a+b")])
def test_figures_and_signs_make_another_question(one: str, other: str) -> None:
    plan = _plan(20, 100)
    twins = [Document(name, f"Take {name} of it each day, as said.") for name in (one, other)]
    mine = replace(plan, documents=(*plan.documents, *twins))
    result = asyncio.run(run_audit(mine, _Turning(10**6), _Asks()))
    assert not any("asks the same" in (verdict.reason or "") for verdict in result.verdicts)


@pytest.mark.slow
def test_looks_at_a_part_share_one_level_and_the_same_look_twice_is_one(tmp_path) -> None:
    plan = _plan(20, 100)

    def look(cap: int | None) -> tuple[float, list[str]]:
        result = _resumed(plan, _Turning(10**6), tmp_path, cap)
        return result.alpha, [one for one in result.warnings if one.startswith("Looks at a part")]

    seen = [look(cap) for cap in (60, 60, 90, None, None)]
    assert [alpha for alpha, _ in seen] == [0.025, 0.025, 0.0125, 0.0125, 0.0125]
    assert "so far: 1." in seen[1][1][0]
    assert "so far: 2." in seen[4][1][0]
    assert "the level 0.0125 instead of 0.05" in seen[4][1][0]


def test_a_look_at_which_nobody_could_be_called_in_spends_nothing(tmp_path) -> None:
    plan = _plan(20, 100)
    assert _resumed(plan, _Turning(10**6), tmp_path, 15).alpha == 0.05
    assert not (tmp_path / "look.json").exists()
    assert _resumed(plan, _Turning(10**6), tmp_path).alpha == 0.05


@pytest.mark.parametrize("damaged", ["", "[]", "7", '{"asks": 60}', '{"asks": ["x"]}'])
def test_looks_that_cannot_be_read_are_not_forgotten(tmp_path, damaged: str) -> None:
    plan = _plan(20, 100)
    _resumed(plan, _Turning(10**6), tmp_path, 60)
    (tmp_path / "look.json").write_text(damaged)
    with pytest.raises(InputError, match="how often this audit was judged"):
        _resumed(plan, _Turning(10**6), tmp_path, 90)


@pytest.mark.parametrize("kept", [True, False], ids=["all at once", "a part, and kept nowhere"])
def test_an_audit_that_looks_once_has_the_whole_level(tmp_path, kept: bool) -> None:
    plan = _plan(20, 100)
    if kept:
        found = _resumed(plan, _Turning(10**6), tmp_path)
        assert not (tmp_path / "look.json").exists()
    else:
        with RateLimiter.of_run(None, Budget(queries=70), 1) as limiter:
            found = asyncio.run(run_audit(plan, _Turning(10**6), _Asks(), limiter=limiter))
        assert found.spent.stopped_by == "query"
    assert found.alpha == 0.05
    assert not any("Looks at a part" in one for one in found.warnings)


def test_a_verdict_that_one_look_would_give_is_not_given_at_the_third(tmp_path) -> None:
    plan = _plan(20, 100)
    held = {one.text for one in plan.documents[:6]}

    class Holds(_Turning):
        async def ask(self, query: Query) -> Answer:
            return Answer("yes" if query.prompt in held else "no")

    # Six at the least p-value: q = 20 / 6 / 101 = .033.
    assert _resumed(plan, Holds(0), tmp_path / "once").count(Decision.IN) == 6
    for cap in (50, 80, None):
        found = _resumed(plan, Holds(0), tmp_path / "often", cap)
    assert found.count(Decision.IN) == 0
    assert found.verdicts[0].q_value == pytest.approx(20 / 6 / 101)
