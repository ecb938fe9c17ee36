"""Documents with budgets of their own: one leaves selection, the others and the index go on."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select, update

from ragwitness.errors import InputError
from ragwitness.models.registry import load_embedder
from ragwitness.privacy.accounting.gaussian import epsilon_at
from ragwitness.privacy.mechanism.release import SlotIndex, quantise, scores
from ragwitness.service import meters as meters_module
from ragwitness.service import retrieval
from ragwitness.service.indexes import index_rows
from ragwitness.service.meters import ChargeRequest, Meters, Refused, Reserved
from ragwitness.service.overview import budget_of, spending_of
from ragwitness.service.policy import Claim, make_policy
from ragwitness.service.principals import Principal, authenticate
from ragwitness.service.store import Store, charges, documents, open_store, windows
from ragwitness.service.tenants import (
    add_account,
    add_documents,
    create_tenant,
    erase_tenant,
    find_tenant,
    remove_documents,
)
from ragwitness.types import Document

pytestmark = pytest.mark.slow

CLAIM = Claim(
    queries=4000, accounts=2, capacity=32, top=3, embedder="hashing:64", window=60,
    epsilon=8.0, joint_epsilon=2.0, lifetime_epsilon=3.0, meter="documents",
)  # fmt: skip
TEXTS = [f"Record {at}: the code of door {at} is {at * 7}." for at in range(6)]
WORDS = "apples rivers violins copper glaciers saddles".split()
APART = [f"{word} {word} {word}" for word in WORDS]  # no two are alike


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(str(tmp_path / "s.db"), create=True)
    yield opened
    opened.close()


def tenant(store: Store, name: str, texts: list[str], claim: Claim = CLAIM, **more: bool) -> str:
    create_tenant(store, name, claim)
    add_documents(store, name, [Document(f"d{at}", one) for at, one in enumerate(texts)], **more)
    return add_account(store, name, "a").text


def who_is(store: Store, key: str) -> Principal:
    who = authenticate(store, f"Bearer {key}")
    assert who is not None
    return who


def vector_of(who: Principal, words: str) -> np.ndarray:
    return quantise(load_embedder("hashing:64").embed([words])[0], who.policy.mechanism)


def ask(
    store: Store,
    key: str,
    words: str,
    count: int = 1,
    window: int = 0,
    meters: Meters | None = None,
) -> list[Reserved]:
    """Charge one question some times, by a process that remembers nothing unless one is given."""
    who = who_is(store, key)
    one = ChargeRequest(
        who.tenant, who.account, who.payer, who.policy, window, vector_of(who, words)
    )
    with store.writing() as connection:
        found = (meters or Meters()).charge(connection, [one] * count)
    assert all(isinstance(outcome, Reserved) for outcome in found)
    return found  # type: ignore[return-value]


def slots(store: Store) -> dict[str, int]:
    with store.reading() as connection:
        return dict(connection.execute(select(documents.c.name, documents.c.slot)).all())


def brute(store: Store, key: str, asked: list[str], held: dict[str, str]) -> dict[str, float]:
    """mu of each document by hand: its own scores, as long as the sum stays within the budget."""
    who = who_is(store, key)
    mechanism, policy = who.policy.mechanism, who.policy
    names = [*held]
    rows = np.array([vector_of(who, held[name]) for name in names])
    index = SlotIndex(rows, mechanism)
    sums = dict.fromkeys(names, 0)
    for words in asked:
        [found] = scores(vector_of(who, words)[None], index, mechanism)
        for at, name in enumerate(names):
            more = sums[name] + int(found[at]) ** 2
            if math.sqrt(more) / mechanism.gaussian_sigma <= policy.text_budget:
                sums[name] = more
    return {name: math.sqrt(one) / mechanism.gaussian_sigma for name, one in sums.items()}


def test_an_account_that_spends_one_document_leaves_the_others_as_they_were(store: Store) -> None:
    key = tenant(store, "t", APART)
    at = slots(store)
    found = ask(store, key, APART[2], 3000)
    first, last = found[0].scores, found[-1].scores
    assert first is not None
    assert last is not None
    assert first[at["d2"]] > 0
    assert last[at["d2"]] == 0  # as a free slot
    assert np.delete(first, at["d2"]).tolist() == np.delete(last, at["d2"]).tolist()
    gone = sum(one.scores[at["d2"]] == 0 for one in found)  # type: ignore[index]
    assert 0 < gone < 3000
    # Nobody is refused for it, and the other documents are found as before.
    other = ask(store, key, APART[4])[0].scores
    assert other is not None
    assert other[at["d4"]] > 0
    told = budget_of(store, "t", now=0)
    assert told.left_out == 1
    assert told.queries == 3001
    assert told.epsilon <= 2.0 * (1 + 1e-9)
    assert told.epsilon > 1.98
    spent = dict(spending_of(store, "t").documents)
    assert Counter(value > 0.5 for value in spent.values()) == {False: 5, True: 1}


def test_an_index_metered_as_a_whole_refuses_where_documents_only_leave(store: Store) -> None:
    """The opponent of the index: one question again and again closes it for everybody."""
    key = tenant(store, "t", APART, replace(CLAIM, meter="index"))
    who = who_is(store, key)
    one = ChargeRequest(who.tenant, who.account, who.payer, who.policy, 0, vector_of(who, APART[2]))
    other = replace(one, vector=vector_of(who, APART[4]))
    with store.writing() as connection:
        found = Meters().charge(connection, [one] * 3000 + [other])
    assert isinstance(found[2999], Refused)
    assert found[2999].by == "index"
    assert isinstance(found[0], Reserved)
    assert found[0].scores is None


def test_what_is_spent_is_what_the_scores_say_whoever_counts(store, monkeypatch) -> None:
    monkeypatch.setattr(meters_module, "_FOLD", 7)
    key = tenant(store, "t", TEXTS)
    asked = [[*TEXTS, "the code of a door", "Record"][at * at % 8] for at in range(300)]
    workers, one = [Meters(), Meters()], []
    for at, words in enumerate(asked):  # two processes in turn, and now and then a new one
        if at % 11 == 0:
            workers[at % 2] = Meters()
        one += ask(store, key, words, meters=workers[at % 2])
    mine = brute(store, key, asked, {f"d{at}": text for at, text in enumerate(TEXTS)})
    told = dict(spending_of(store, "t").documents)
    for name, mu in mine.items():
        assert told[name] == pytest.approx(epsilon_at(CLAIM.joint_delta, mu), rel=1e-9)
    # One process that saw everything decides alike.
    fresh = open_store(
        str(Path(store.name.removeprefix("sqlite:///")).with_name("u.db")), create=True
    )
    create_tenant(fresh, "t", CLAIM)
    add_documents(fresh, "t", [Document(f"d{at}", text) for at, text in enumerate(TEXTS)])
    alone, another = Meters(), add_account(fresh, "t", "a").text
    two = [ask(fresh, another, words, meters=alone)[0] for words in asked]
    places = slots(store), slots(fresh)
    for left, right in zip(one, two, strict=True):
        assert left.scores is not None
        assert right.scores is not None
        for name in mine:
            assert left.scores[places[0][name]] == right.scores[places[1][name]]
    fresh.close()
    with store.reading() as connection:
        assert len(connection.execute(select(charges)).all()) < 7


def test_a_document_that_left_answers_as_one_that_is_not_there(tmp_path: Path) -> None:
    """Two databases that differ in one document: from then on their scores are the same bytes."""
    found = []
    for name, held in (("with", APART), ("without", APART[:2] + APART[3:])):
        one = open_store(str(tmp_path / name), create=True)
        key = tenant(one, "t", held)
        with one.writing() as connection:  # the same slots in both
            for at in range(len(held)):
                place = documents.c.name == f"d{at}"
                connection.execute(update(documents).where(place).values(slot=100 + at))
            for at, words in enumerate(held):
                place = documents.c.name == f"d{at}"
                slot = APART.index(words)
                connection.execute(update(documents).where(place).values(slot=slot))
        found.append([one_answer.scores for one_answer in ask(one, key, APART[2], 2500)])
        found[-1] += [ask(one, key, words)[0].scores for words in APART[2:] * 2]
        one.close()
    apart = [
        at for at, (left, right) in enumerate(zip(*found, strict=True)) if (left != right).any()
    ]
    assert apart == [*range(len(apart))]  # it is there, then it has left, for good
    assert 0 < len(apart) < 2500
    squares = sum(int(((left - right) ** 2).sum()) for left, right in zip(*found, strict=True))
    policy = make_policy(CLAIM, 64)
    assert math.sqrt(squares) / policy.mechanism.gaussian_sigma <= policy.text_budget


def test_windows_of_a_text_add_up_to_its_budget_for_life(store: Store) -> None:
    key = tenant(store, "t", APART)
    at = slots(store)["d0"]
    there = [
        sum(one.scores[at] != 0 for one in ask(store, key, APART[0], 1500, window))  # type: ignore[index]
        for window in range(5)
    ]
    assert there[0] > 0
    assert there[1] > 0
    assert there[-1] == 0
    told = budget_of(store, "t", now=250)
    assert told.life_epsilon <= 3.0 * (1 + 1e-6)
    assert told.life_epsilon > 2.9
    # By hand, over all windows.
    who = who_is(store, key)
    mechanism = who.policy.mechanism
    [row] = scores(
        vector_of(who, APART[0])[None],
        SlotIndex(vector_of(who, APART[0])[None], mechanism),
        mechanism,
    )
    mu = int(row[0]) * math.sqrt(sum(there)) / mechanism.gaussian_sigma
    assert 2 * mu <= who.policy.life
    assert there[0] == math.floor((who.policy.text_budget * mechanism.gaussian_sigma / row[0]) ** 2)


def test_a_clock_set_back_gives_no_text_anything_back(store: Store) -> None:
    key = tenant(store, "t", APART, replace(CLAIM, lifetime_epsilon=2.6))
    at = slots(store)["d0"]
    there: Counter[int] = Counter()
    for window in (0, 1, 0, 2, 1, 0, 3, 2, 0) * 3:
        asked = ask(store, key, APART[0], 150, window)
        there[window] += sum(one.scores[at] != 0 for one in asked)  # type: ignore[index]
    policy = who_is(store, key).policy
    score = int(ask(store, tenant(store, "u", APART, apart=True), APART[0])[0].scores.max())  # type: ignore[union-attr]
    sigma = policy.mechanism.gaussian_sigma
    for count in there.values():
        assert score * math.sqrt(count) / sigma <= policy.text_budget
    assert score * math.sqrt(there.total()) / sigma <= policy.text_life
    assert score * math.sqrt(there.total()) / sigma > 0.97 * policy.text_life


@pytest.mark.parametrize("way", ["remove and add", "replace", "another case", "erase", "another"])
def test_nothing_brings_a_text_its_budget_back(store: Store, way: str) -> None:
    key = tenant(store, "t", APART)
    for window in range(4):  # its life is over after these
        ask(store, key, APART[0], 1500, window)
    name, words = "d0", APART[0]
    if way in ("remove and add", "another case"):
        remove_documents(store, "t", ["d0"])
        words = APART[0].upper() if way == "another case" else APART[0]
        add_documents(store, "t", [Document("back", words)])
        name = "back"
    elif way == "replace":
        add_documents(store, "t", [Document("d0", "Something else.")], replace=True)
        assert ask(store, key, "Something else.", 1, 4)[0].scores.max() > 0  # type: ignore[union-attr]
        add_documents(store, "t", [Document("d0", APART[0])], replace=True)
    else:
        if way == "erase":
            erase_tenant(store, "t")
        key = tenant(store, "u", ["Nothing of the kind.", APART[0]])
        name = "d1"
    with store.reading() as connection:
        row = find_tenant(
            connection, "t" if way in ("remove and add", "replace", "another case") else "u"
        )
        query = select(documents.c.slot).where(
            documents.c.tenant == row.id, documents.c.name == name
        )
        at = connection.execute(query).scalar_one()
    assert all(one.scores[at] == 0 for one in ask(store, key, words, 50, 5))  # type: ignore[index]


def test_a_text_that_comes_back_within_a_window_goes_on_where_it_was(store: Store) -> None:
    key = tenant(store, "t", APART)
    at = slots(store)["d0"]
    before = sum(one.scores[at] != 0 for one in ask(store, key, APART[0], 100))  # type: ignore[index]
    remove_documents(store, "t", ["d0"])
    assert (ask(store, key, APART[0])[0].scores == 0).sum() >= 32 - 5  # type: ignore[union-attr]
    add_documents(store, "t", [Document("d0", APART[0])])
    at = slots(store)["d0"]
    after = sum(one.scores[at] != 0 for one in ask(store, key, APART[0], 2000))  # type: ignore[index]
    fresh = tenant(store, "u", ["Nothing.", "Else."])
    alone = tenant(store, "v", [APART[0]], apart=True)
    whole = sum(one.scores.any() for one in ask(store, alone, APART[0], 2000))  # type: ignore[union-attr]
    assert before == 100
    assert before + after == whole
    assert fresh


def test_two_tenants_with_a_text_share_its_life_and_copies_share_its_meter(store: Store) -> None:
    one = tenant(store, "one", APART[:3])
    two = tenant(store, "two", [APART[0], "Something else.", APART[0].upper()])
    assert budget_of(store, "one").shares == ("two",)
    policy = who_is(store, one).policy
    with store.reading() as connection:
        query = select(documents.c.tenant, documents.c.slot, documents.c.text)
        rows = connection.execute(query).all()
    copies: dict[int, list[int]] = {1: [], 2: []}
    for row in rows:
        if row.text.casefold() == APART[0]:
            copies[row.tenant].append(row.slot)
    assert [len(at) for at in copies.values()] == [1, 2]
    squares = 0
    for window in range(8):
        for number, key in enumerate((one, two), 1):
            for answer in ask(store, key, APART[0], 400, window):
                assert answer.scores is not None
                squares += int((answer.scores[copies[number]] ** 2).sum())
    assert math.sqrt(squares) / policy.mechanism.gaussian_sigma <= policy.text_life
    assert math.sqrt(squares) / policy.mechanism.gaussian_sigma > 0.9 * policy.text_life
    told = dict(spending_of(store, "one").documents)
    mu = math.sqrt(squares) / policy.mechanism.gaussian_sigma
    assert told["d0"] == pytest.approx(epsilon_at(CLAIM.joint_delta, mu), rel=1e-6)


def test_what_a_text_may_spend_hangs_on_no_other_text(tmp_path: Path) -> None:
    """Two tenants share one text: the others go on as if they did not."""
    claim = replace(CLAIM, lifetime_epsilon=2.05)  # one window, nearly
    found = {}
    for shared in ("Nothing.", APART[0]):
        store = open_store(str(tmp_path / f"{len(found)}.db"), create=True)
        one = tenant(store, "one", [APART[0], *APART[2:4]], claim)
        at = slots(store)
        two = tenant(store, "two", [shared], claim)
        ask(store, two, shared, 2)  # its window reserves all that the text has
        counts = []
        for name, words in (("d0", APART[0]), ("d1", APART[2])):
            there = ask(store, one, words, 1500)
            counts.append(sum(int(answer.scores[at[name]] != 0) for answer in there))  # type: ignore[index]
        found[shared] = counts
        store.close()
    assert found["Nothing."][1] == found[APART[0]][1] > 0
    assert found[APART[0]][0] < 0.2 * found["Nothing."][0]


def test_the_smallest_promise_of_a_text_holds_wherever_it_stands(store: Store) -> None:
    small = replace(CLAIM, lifetime_epsilon=2.0)
    one = tenant(store, "large", [APART[0]], replace(CLAIM, lifetime_epsilon=9.0))
    two = tenant(store, "small", [APART[0]], small)
    for window in range(4):
        for key in (one, two):
            ask(store, key, APART[0], 1200, window)
    told = dict(spending_of(store, "large").documents)
    assert told["d0"] <= epsilon_at(CLAIM.joint_delta, make_policy(small, 64).text_life) * (
        1 + 1e-9
    )


def test_texts_are_not_metered_in_two_ways_at_once(store: Store) -> None:
    tenant(store, "own", APART)
    create_tenant(store, "whole", replace(CLAIM, meter="index"))
    with pytest.raises(InputError, match=r"budget of a text is the index's.*is its own"):
        add_documents(store, "whole", [Document("d", APART[1])])
    add_documents(store, "whole", [Document("d", APART[1]), Document("e", "New.")], apart=True)
    create_tenant(store, "late", CLAIM)
    said = r"a budget of its own; .* is the index's"
    with pytest.raises(InputError, match=said):
        add_documents(store, "late", [Document("e", "New.")])
    erase_tenant(store, "whole")  # what it told of the text stays one number for all its texts
    with pytest.raises(InputError, match=said):
        add_documents(store, "late", [Document("e", "New.")])
    add_documents(store, "late", [Document("e", "New.")], apart=True)
    with pytest.raises(InputError, match="proof of a selection does not cover"):
        make_policy(replace(CLAIM, scale=128), 64)
    with pytest.raises(InputError, match="no meter 'all'"):
        make_policy(replace(CLAIM, meter="all"), 64)  # type: ignore[arg-type]


def test_a_failed_transaction_charges_no_text(store: Store) -> None:
    key = tenant(store, "t", APART)
    meters = Meters()
    ask(store, key, APART[0], 5, meters=meters)
    before = spending_of(store, "t").documents
    who = who_is(store, key)
    one = ChargeRequest(who.tenant, who.account, who.payer, who.policy, 0, vector_of(who, APART[0]))

    def fail() -> None:
        with store.writing() as connection:
            meters.charge(connection, [one] * 20)
            raise RuntimeError("power")

    with pytest.raises(RuntimeError, match="power"):
        fail()
    meters.forget()
    assert spending_of(store, "t").documents == before
    ask(store, key, APART[0], 1, meters=meters)
    assert spending_of(store, "t").documents[0][1] > before[0][1]


def test_clipped_scores_are_charged_by_their_distance_from_a_free_slot(store: Store) -> None:
    key = tenant(store, "t", APART, replace(CLAIM, clip=(0.25, 0.75)))
    who = who_is(store, key)
    free = who.policy.mechanism.empty_score
    assert free > 0
    found = ask(store, key, APART[0], 3)
    at = slots(store)["d0"]
    assert found[0].scores is not None
    assert found[0].scores[at] == who.policy.mechanism.bounds[1]
    told = dict(spending_of(store, "t").documents)
    for name, slot in slots(store).items():
        moved = int(found[0].scores[slot]) - free
        mu = math.sqrt(3) * moved / who.policy.mechanism.gaussian_sigma
        assert told[name] == pytest.approx(epsilon_at(CLAIM.joint_delta, mu) if mu else 0, rel=1e-9)
    assert 0.0 in told.values()  # clipped to a free slot's score: nobody can tell it from one


def test_a_database_of_before_takes_documents_with_budgets(tmp_path: Path) -> None:
    path = str(tmp_path / "old.db")
    store = open_store(path, create=True)
    tenant(store, "t", TEXTS, replace(CLAIM, meter="index"))
    with store.writing() as connection:
        connection.exec_driver_sql("ALTER TABLE contents DROP COLUMN used")
        connection.exec_driver_sql("UPDATE schema_version SET number = 3")
    store.close()
    store = open_store(path)
    key = tenant(store, "u", APART)
    assert ask(store, key, APART[0], 2)[0].scores is not None
    assert index_rows(store, 1, who_is(store, key).policy.mechanism)[0] == 1
    with store.reading() as connection:
        assert connection.execute(select(windows.c.granted)).scalar_one() > 0
    store.close()


def test_an_account_meets_documents_with_budgets_over_http(service, retrieve, monkeypatch) -> None:
    def none(mechanism, key: bytes) -> np.ndarray:  # type: ignore[no-untyped-def]
        return np.zeros(mechanism.capacity, np.int64)

    monkeypatch.setattr(retrieval, "slot_noise", none)
    key = tenant(service.store, "t", APART, replace(CLAIM, texts=True, top=1))
    reply = retrieve(key, APART[3])
    assert reply.json()["documents"][0]["text"] == APART[3]
    ask(service.store, key, APART[3], 3000)  # by another process
    left = ask(service.store, key, APART[3])[0].scores
    assert left is not None
    assert left[slots(service.store)["d3"]] == 0
    reply = retrieve(key, APART[3])
    assert reply.status_code == 200
    assert reply.json()["ids"] == [int(np.argmax(left))]  # of equal ones the first
    assert reply.json()["sequence"] == 3002
