"""Documents that are placed once for life, and who each of them is: over HTTP and in the tables."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.service.documents import (
    add_documents,
    changed_since_draw,
    placed_slots,
    remove_documents,
)
from ragwitness.service.policy import Claim, TenantPolicy, check_worth, make_policy
from ragwitness.service.store import Store
from ragwitness.service.tables import contents, documents, tenants
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


def codes(store: Store) -> dict[int, int]:
    """The group of each filled slot."""
    with store.reading() as connection:
        [row] = connection.execute(select(tenants.c.id)).scalars()
    _, index = placed_slots(store, row)
    return dict(zip(index.slots.tolist(), index.codes.tolist(), strict=True))


def held(store: Store) -> dict[tuple[str, int], str]:
    with store.reading() as connection:
        return {(row.name, row.part): row.text for row in connection.execute(select(documents))}


def test_a_question_finds_its_document_and_shows_no_other(service: Any, retrieve: Any) -> None:
    key = tenant(service.store, "t", names(40))
    found, shown = 0, 0
    for at in range(40):
        reply = retrieve(key, f"Who had ailment{at:03d}?")
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
    assert found >= 20  # of 40 questions; by lot it would be 2
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


def test_an_id_is_placed_once_whatever_becomes_of_it(store: Store) -> None:
    """A new text, removal and return: one draw; the replaced ones are counted."""
    tenant(store, "t", [*names(20), Document("smith", SMITH)])
    first = identities(store)["smith"]
    assert changed_since_draw(store, "t") == 0
    for n in range(1, 6):
        add_documents(store, "t", [Document("smith", SMITH + "." * n)], replace=True)
    again = identities(store)["smith"]
    assert (again.code, again.version) == (first.code, 6)
    assert changed_since_draw(store, "t") == 1
    remove_documents(store, "t", ["smith"])
    assert changed_since_draw(store, "t") == 0
    add_documents(store, "t", [Document("smith", "another text")])
    assert identities(store)["smith"].code == first.code
    assert len(identities(store)) == 21


def test_a_corrected_document_leaves_nothing_behind(store: Store) -> None:
    long = " ".join(f"oldsecret{at}" for at in range(900))
    create_tenant(store, "t", CLAIM)
    add_documents(store, "t", [Document("letter", long)], split=True)
    assert [*held(store)] == [("letter", at) for at in range(5)]
    # All its parts stand where the whole was placed: one draw for one document.
    with store.reading() as connection:
        slots = [row.slot for row in connection.execute(select(documents))]
    assert {codes(store)[slot] for slot in slots} == {identities(store)["letter"].code}
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
