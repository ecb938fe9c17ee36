"""A provider that knows the beacon and looks for a challenge that misses its lie."""

from dataclasses import replace

import pytest

from ragwitness.attest.bundle import read_bundle
from ragwitness.attest.verifier import verify
from tests.support.attested import Story, believing
from tests.support.lies import named


def _lie(audited, turn, count):
    """The last answer is another than the mechanism's; its blindings are free to choose."""
    story = Story.of(audited)
    story.count = count
    salt = turn.to_bytes(32, "big")
    story.reopen(8, ids=story.opened[8].ids[::-1], blindings=(salt, salt, salt))
    story._seal()
    return story


def _proved(story):
    for place in story.drawn():
        story.proofs[place] = story.prove(place)
    return story.tell()


def test_a_log_that_is_closed_again_once_the_beacon_is_known(audited):
    """The new close draws other records; without the first one nothing would tell."""
    tries = (_lie(audited, turn, 3) for turn in range(99))
    data = _proved(next(story for story in tries if 8 not in story.drawn()))
    named(audited, data, "challenge.close", trust=audited.trust)
    assert verify(data, believing(audited, data)).outcome == "pass"  # who saw no other close


def test_more_records_than_were_asked_for(audited):
    """Each number of records draws others, so that a provider could choose among the draws."""
    tries = (_lie(audited, turn, 4 + turn % 3) for turn in range(99))
    data = _proved(next(story for story in tries if 8 not in story.drawn()))
    asked = replace(believing(audited, data), records=3)
    named(audited, data, "challenge.count", trust=asked)


@pytest.mark.parametrize("lacking", [{"close": ""}, {"records": 0}, {"beacon": b""}])
def test_a_trust_file_that_does_not_fix_the_draw_passes_nothing(audited, lacking):
    found = verify(audited.bundle, replace(audited.trust, **lacking))
    assert found.outcome == "inconclusive", found.why
    assert next(c for c in found.checks if c.name == "challenge.beacon").status == "not checked"


def test_the_close_in_the_trust_file_is_that_of_the_bundle(audited):
    assert audited.trust == believing(audited, audited.bundle)
    assert len(read_bundle(audited.bundle).records) == audited.trust.records
