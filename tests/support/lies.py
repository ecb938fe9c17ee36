"""Lies of a provider, signed with its own key, and by which name they must fail."""

import json
from hashlib import sha256

from ragwitness.attest.bundle import read_bundle, write_bundle
from ragwitness.attest.commitments import index_commitment
from ragwitness.attest.verifier import verify
from ragwitness.core.errors import VerificationError
from ragwitness.crypto.hashing import canonical
from tests.support.attested import LOG, POLICY, Story, believing


def named(audited, data, check, trust=None, **more):
    """The bundle fails, and first by this name, to an auditor who saw no other close."""
    found = judged(audited, data, trust, **more)
    assert found.outcome == "fail", found.why
    assert found.failures[0].failure == check, found.why
    assert found.epsilon is None


def judged(audited, data, trust=None, **more):
    """The verdict of an auditor who drew its challenge from this very log."""
    try:
        trust = trust or believing(audited, data)
    except VerificationError:
        trust = audited.trust
    return verify(data, trust, **more)


def first_drawn(audited, tell):
    """A story in which the record that is lied about is the one that is challenged."""
    for turn in range(200):
        story = Story.of(audited)
        story.count, place = 1, turn % 9
        tell(story, place)
        story._seal()
        if story.drawn() == (place,):
            return story, place
    raise AssertionError("never drawn")


def as_honest(audited, files):
    """The honest bundle with some of its files replaced, signed again."""
    honest = dict(read_bundle(audited.bundle).files)
    return write_bundle(POLICY.window, honest | files, [LOG])


def recommit(story, policy=None, **fields):
    """Change the open record, before the first query."""
    if policy is not None:
        story.files["policy.json"] = policy.encode()
        fields["policy"] = policy.digest
        fields["seed_count"] = str(policy.seed_count)
        fields["indexes"] = tuple(
            index.model_copy(update={"mechanism": policy.tenants[index.tenant].digest})
            for index in story.records[0].indexes
        )
    story.records[0] = story.records[0].model_copy(update=fields)


def reindex(story, *, columns=None, norms=None):
    """Commit to another index of the first tenant from the start."""
    place, files = 0, story.files
    card = json.loads(files[f"tenants/{place}/index.json"])
    if columns is not None:
        files[f"tenants/{place}/columns.bin"] = columns.encode()
        card["columns"] = columns.digest
    if norms is not None:
        files[f"tenants/{place}/norms.bin"] = norms
        card["norms"] = sha256(norms).hexdigest()
    files[f"tenants/{place}/index.json"] = canonical(card)
    first, *rest = story.records[0].indexes
    commitment = index_commitment(canonical(card))
    recommit(story, indexes=(first.model_copy(update={"commitment": commitment}), *rest))
    story.relink()
