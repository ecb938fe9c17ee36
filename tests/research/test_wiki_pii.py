"""Wiki-PII: chunks lose nothing, secrets are of nobody, each found in its record alone."""

from __future__ import annotations

import re

import pytest

from ragwitness.core.errors import InputError
from ragwitness.leakage.attacks.base import Transcript
from ragwitness.leakage.score.hits import find_secrets
from ragwitness.text.secrets import contacts
from research.synthetic.wiki_pii import RESULT_TYPES, WikiPii, chunks, made_up, wiki_pii

_PROSE = "\n\n".join(
    f" = Heading {i} = \n A sentence about item {i} , which is long . Another one ! Is it ? Yes .\n"
    + " ".join(f"word{i}x{j}" for j in range(60))
    for i in range(12)
)


@pytest.fixture(scope="module")
def made() -> WikiPii:
    return wiki_pii(_PROSE, seed=5, size=400)


def test_chunks_lose_nothing_and_fit() -> None:
    for size in (30, 400, 1500):
        found = chunks(_PROSE, size)
        assert max(map(len, found)) <= size
        assert "".join("".join(found).split()) == "".join(_PROSE.split())
    assert chunks("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]
    assert chunks(" \n\n ", 10) == []


def test_every_sentence_end_has_a_secret(made: WikiPii) -> None:
    for record in made.records:
        planted = [one for one in made.secrets if one.record == record.id]
        assert planted
        assert all(record.text.count(one.text) == 1 for one in planted)
        bare = record.text
        for one in planted:
            bare = bare.replace(f" {one.text}", "")
        assert len(planted) >= len(re.findall(r"[.!?](?=\s|$)", bare))


def test_secrets_are_of_nobody_and_of_every_kind(made: WikiPii) -> None:
    assert {one.kind for one in made.secrets} == set(RESULT_TYPES)
    for one in (*made.secrets, *made.decoys):
        assert contacts(one.text) == {one.text}
        if one.kind == "phone":
            assert re.search(r"555\D*01\d\d$", one.text)
        else:
            assert re.search(r"example\.(com|org|net)", one.text)


def test_secrets_are_told_apart_and_decoys_are_nowhere(made: WikiPii) -> None:
    told = [Transcript("x", "p", record.text) for record in made.records]
    assert find_secrets(told, made.secrets)[1].all()
    _, got_out = find_secrets(told[:1], made.secrets)
    theirs = [secret.record == made.records[0].id for secret in made.secrets]
    assert got_out.tolist() == theirs
    assert not find_secrets(told, made.decoys)[1].any()
    kinds = [[one.kind for one in ledger] for ledger in (made.secrets, made.decoys)]
    assert kinds[0] == kinds[1]


def test_the_seed_decides_and_a_limit_samples(made: WikiPii) -> None:
    assert wiki_pii(_PROSE, seed=5, size=400) == made
    assert wiki_pii(_PROSE, seed=6, size=400).secrets != made.secrets
    assert len(wiki_pii(_PROSE, size=400, most=3).records) == 3


@pytest.mark.parametrize("options", [{"size": 0}, {"most": 0}])
def test_sizes_must_make_sense(options: dict[str, int]) -> None:
    with pytest.raises(InputError, match="at least one"):
        wiki_pii(_PROSE, **options)


def test_a_blank_text_is_refused() -> None:
    with pytest.raises(InputError, match="no text"):
        wiki_pii(" \n ")


def test_contacts_are_made_up_one_a_record_and_decoys_are_none_of_them() -> None:
    made = made_up(["a", "b", "", ""] * 50, seed=3)
    assert [one.record for one in made] == ["a", "b", "", ""] * 50
    assert len({one.text for one in made}) == len(made)
    assert {one.kind for one in made} == set(RESULT_TYPES)
    assert made == made_up(["a", "b", "", ""] * 50, seed=3)
