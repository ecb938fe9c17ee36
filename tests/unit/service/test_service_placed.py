"""Documents that are placed once for life, and who each of them is: over HTTP and in the tables."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.service.documents import add_documents, remove_documents
from ragwitness.service.policy import Claim, TenantPolicy, check_worth, make_policy
from ragwitness.service.store import Store
from ragwitness.service.tables import contents, documents, placements
from ragwitness.service.tenants import (
    add_account,
    budget_of,
    create_tenant,
    erase_tenant,
)

CLAIM = Claim(capacity=64, embedder="hashing:128", texts=True)
SMITH = "Mr Smith of Elm Street was diagnosed with nephritis on Monday"


def names(count: int) -> list[Document]:
    return [
        Document(f"d{at}", f"Visit of patient{at:03d} about ailment{at:03d}") for at in range(count)
    ]


def tenant(store: Store, name: str, given: list[Document], claim: Claim = CLAIM) -> str:
    create_tenant(store, name, claim)
    add_documents(store, name, given)
    return add_account(store, name, "a")


def identities(store: Store) -> dict[str, Any]:
    with store.reading() as connection:
        return {row.name: row for row in connection.execute(select(contents))}


def codes(store: Store) -> np.ndarray:
    with store.reading() as connection:
        return np.frombuffer(connection.execute(select(placements.c.codes)).scalar_one(), "<i4")


def held(store: Store) -> dict[tuple[str, int], str]:
    with store.reading() as connection:
        return {(row.name, row.part): row.text for row in connection.execute(select(documents))}


def test_a_question_finds_its_document_and_shows_no_other(service: Any, retrieve: Any) -> None:
    key = tenant(service.store, "t", names(40))
    found, shown = 0, 0
    for at in range(40):
        reply = retrieve(key, f"What did patient{at:03d} have?")
        body = reply.json()
        assert reply.status_code == 200
        assert body.keys() == {"object", "ids", "documents"}
        assert len(set(body["ids"])) == 4
        texts = [one["id"] for one in body["documents"]]
        assert set(texts) <= {f"d{at}"}
        found += texts == [f"d{at}"]
        # A question about nobody gets slots, and reads nothing.
        nothing = retrieve(key, f"anything {at}").json()
        assert len(nothing["ids"]) == 4
        shown += len(nothing["documents"])
    assert found >= 20  # one rarest word of two, by 40 questions; by lot it would be 2
    assert shown == 0


def test_nothing_is_metered_and_every_worker_says_the_same(service: Any, retrieve: Any) -> None:
    key = tenant(service.store, "t", names(20))
    first = [retrieve(key, "patient003?").json()["ids"] for _ in range(3)]
    assert first[0] == first[1] == first[2]
    usage = service.send("/v1/usage", None, key).json()
    assert usage["promise"]["epsilon"] == 10.0
    assert "meters" not in usage
    refused = service.send("/v1/retrieval", {"vector": [0.5] * 128}, key)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "vector")
    with pytest.raises(InputError, match="no meter and no window"):
        budget_of(service.store, "t")


def test_a_chat_reads_the_same_documents_and_ids_only_shows_none(service: Any) -> None:
    key = tenant(service.store, "t", names(30))
    bare = tenant(service.store, "bare", names(30), Claim(capacity=64, embedder="hashing:128"))
    said = {True: "", False: ""}
    for at in range(30):
        ask = {"messages": [{"role": "user", "content": f"patient{at:03d} ailment{at:03d}"}]}
        for which, one in ((True, key), (False, bare)):
            reply = service.send("/v1/chat/completions", ask, one)
            assert reply.status_code == 200
            said[which] += reply.json()["choices"][0]["message"]["content"]
    assert said[True].count("Visit of") >= 15
    assert "Visit of" not in said[False]


def test_a_document_is_placed_once_whatever_becomes_of_it(store: Store) -> None:
    """The opponent of finding 6: a full stop, another id, a new text, removal and return."""
    tenant(store, "t", [*names(20), Document("smith", SMITH)])
    first = identities(store)["smith"]
    for n in range(1, 6):
        add_documents(store, "t", [Document("smith", SMITH + "." * n)], replace=True)
    again = identities(store)["smith"]
    assert (again.account, again.code, again.version) == (first.account, first.code, 6)
    # A near copy under another id, before and after the first is gone.
    add_documents(store, "t", [Document("smith-2", SMITH + " !")])
    remove_documents(store, "t", ["smith"])
    add_documents(store, "t", [Document("smith", SMITH)])
    remove_documents(store, "t", ["smith", "smith-2"])
    add_documents(store, "t", [Document("other id", SMITH.upper())])
    found = identities(store)
    assert {found[one].account for one in ("smith", "smith-2", "other id")} == {first.account}
    assert {found[one].code for one in ("smith", "smith-2", "other id")} == {first.code}
    # Another document altogether has an account of its own, and so has each of the others.
    assert len({row.account for row in found.values()}) == 21


@pytest.mark.parametrize(
    "change",
    [
        lambda text: unicodedata.normalize("NFD", text),
        lambda text: text.replace(" ", " \u200b"),
        lambda text: f"\n {text.casefold()}  ",
    ],
)
def test_a_text_that_looks_the_same_is_the_same(store: Store, change: Any) -> None:
    text = f"Müller: {SMITH}"
    tenant(store, "t", [Document("a", text)])
    remove_documents(store, "t", ["a"])
    add_documents(store, "t", [Document("b", change(text))])
    found = identities(store)
    assert found["a"].account == found["b"].account


LETTER = (
    "Dear Dr Brown, thank you for sending this pleasant man of sixty-four, whom I saw in the renal"
    " clinic. He reports swelling of both ankles since the summer and has noticed frothy urine."
    " His blood pressure was 162 over 94 and I have asked for a biopsy in the coming week."
)


@pytest.mark.parametrize("gone", [True, False])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("{} Printed on 1 March 2024, page 1 of 1.", "{} Printed on 12 April 2025, page 1 of 1."),
        ("{}", "{} Printed on 1 March 2024."),
        ("{}", "Letter of 2 May: {}"),
    ],
)
def test_another_date_under_another_id_begins_no_other_life(
    store: Store, first: str, second: str, gone: bool
) -> None:
    tenant(store, "t", [*names(10), Document("letter", first.format(LETTER))])
    if gone:
        remove_documents(store, "t", ["letter"])
    add_documents(store, "t", [Document("letter of today", second.format(LETTER))])
    found = identities(store)
    both = [found[name] for name in ("letter", "letter of today")]
    assert both[0].account == both[1].account
    assert both[0].code == both[1].code


def test_letters_of_one_form_about_two_people_have_two_lives(store: Store) -> None:
    form = "Dear Dr Brown, thank you for sending {}. {} Kind regards, the renal clinic"
    told = [
        ("this pleasant man of sixty", "He reports swelling of both ankles since the summer."),
        ("Mrs Jones", "She came with a fever and a cough that kept her awake for nine nights."),
    ]
    letters = [Document(str(at), form.format(*each)) for at, each in enumerate(told)]
    tenant(store, "t", letters)
    assert len({row.account for row in identities(store).values()}) == 2


def test_copies_within_one_corpus_share_an_account_and_strangers_do_not(store: Store) -> None:
    tenant(store, "t", [Document("1", SMITH), Document("2", SMITH + "."), *names(10)])
    found = identities(store)
    assert found["1"].account == found["2"].account
    assert len({row.account for row in found.values()}) == 11


def test_a_corrected_document_leaves_nothing_behind(store: Store) -> None:
    long = " ".join(f"oldsecret{at}" for at in range(900))
    create_tenant(store, "t", CLAIM)
    add_documents(store, "t", [Document("letter", long)], split=True)
    assert [*held(store)] == [("letter", at) for at in range(5)]
    # All its parts stand where the whole was placed: one draw for one document.
    with store.reading() as connection:
        slots = [row.slot for row in connection.execute(select(documents))]
    assert {int(codes(store)[slot]) for slot in slots} == {identities(store)["letter"].code}
    add_documents(store, "t", [Document("letter", "short and corrected")], replace=True)
    assert held(store) == {("letter", 0): "short and corrected"}
    add_documents(
        store,
        "t",
        [Document("letter", " ".join(f"new{at}" for at in range(420)))],
        split=True,
        replace=True,
    )
    assert len(held(store)) == 3
    assert not any("oldsecret" in text for text in held(store).values())


def test_a_sign_in_an_id_is_a_sign(store: Store) -> None:
    ids = ["https://h/page", "https://h/page#a", "https://h/page#0", "ends#", "#"]
    tenant(store, "t", [Document(one, f"text number{at}") for at, one in enumerate(ids)])
    assert remove_documents(store, "t", ["https://h/page"]) == 1
    assert remove_documents(store, "t", ["ends#"]) == 1
    assert {name for name, _ in held(store)} == {"https://h/page#a", "https://h/page#0", "#"}


def test_no_change_shows_which_slots_were_filled(store: Store) -> None:
    """Every slot without a document is drawn anew at each change, and no other one is."""
    tenant(store, "t", names(30))
    with store.reading() as connection:
        filled = {row.slot for row in connection.execute(select(documents))}
    before = codes(store)
    add_documents(store, "t", [Document("one more", SMITH)])
    changed = {int(slot) for slot in np.flatnonzero(before != codes(store))}
    assert not changed & filled
    assert len(changed) > (64 - 30) / 2
    remove_documents(store, "t", ["one more"])
    assert {int(slot) for slot in np.flatnonzero(before != codes(store))} & filled == set()


def test_no_tenant_sees_another(service: Any, retrieve: Any) -> None:
    answers = []
    for shared in (True, False):
        key = tenant(service.store, "victim", names(20))
        other = [Document("guess", names(20)[3].text if shared else SMITH)]
        guess = tenant(service.store, "other", other)
        answers.append([len(retrieve(one, "patient003").json()["ids"]) for one in (key, guess)])
        erase_tenant(service.store, "victim")
        erase_tenant(service.store, "other")
    assert answers[0] == answers[1]


def test_hashes_of_texts_hang_on_a_key_that_the_database_has_not(
    store: Store, tmp_path: Path
) -> None:
    tenant(store, "one", [Document("a", SMITH)])
    with store.reading() as connection:
        [first] = connection.execute(select(contents.c.sketch)).scalars()
    tenant(store, "two", [Document("a", SMITH)])
    with store.reading() as connection:
        both = set(connection.execute(select(contents.c.sketch)).scalars())
    assert len(both) == 2  # no two tenants' hashes can be compared
    path = tmp_path / "service.db.key"
    assert len(path.read_bytes()) == 32
    assert path.stat().st_mode & 0o077 == 0
    assert path.read_bytes() not in (tmp_path / "service.db").read_bytes()
    # Under another key nothing matches any more.
    path.write_bytes(b"x" * 32)
    remove_documents(store, "one", ["a"])
    add_documents(store, "one", [Document("b", SMITH)])
    with store.reading() as connection:
        assert first in set(connection.execute(select(contents.c.sketch)).scalars())
        assert len(set(connection.execute(select(contents.c.sketch)).scalars())) == 3
    # Without one, or with what is none, no document is added: it would be placed a second time.
    for spoil, why in ((lambda: path.write_bytes(b""), "has 0 bytes"), (path.unlink, "No such")):
        spoil()
        with pytest.raises(InputError, match=why):
            add_documents(store, "two", [Document("c", SMITH)])
        assert path.exists() is (why == "has 0 bytes")
    # After an erasure nothing is left to guess at.
    erase_tenant(store, "one")
    erase_tenant(store, "two")
    assert identities(store) == {}


def test_what_is_worth_nothing_or_gives_all_away_is_said() -> None:
    good = make_policy(CLAIM, 128)
    check_worth(good)
    assert good.worth > 0.5
    assert good.reads == 0
    assert TenantPolicy.from_json(good.to_json()) == good
    with pytest.raises(InputError, match="an answer is chance"):
        check_worth(make_policy(Claim(epsilon=1.0), 128))
    noise = Claim(mechanism="noise", epsilon=1.0, texts=True)
    with pytest.raises(InputError, match="an answer is chance"):
        check_worth(make_policy(noise, 128))
    useful = Claim(
        mechanism="noise", epsilon=30.0, delta=1e-7, queries=1, accounts=1, top=1, capacity=64,
        joint_epsilon=30.0, lifetime_epsilon=30.0, relation="add-remove", texts=True,
    )  # fmt: skip
    check_worth(make_policy(useful, 128))
    many = Claim(
        mechanism="noise", epsilon=6000.0, delta=1e-7, queries=100, accounts=1,
        joint_epsilon=30.0, lifetime_epsilon=30.0, texts=True, sampler="exact",
    )  # fmt: skip
    policy = make_policy(many, 128)
    assert policy.reads == pytest.approx(1 - (1 - 4 / 1024) ** 100)
    with pytest.raises(InputError, match="can read 32% of"):
        check_worth(policy)
    with pytest.raises(InputError, match="no mechanism 'dice'"):
        make_policy(Claim(mechanism="dice"), 128)  # type: ignore[arg-type]
