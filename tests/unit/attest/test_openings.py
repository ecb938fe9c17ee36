"""The provider's one log of its windows: what it adds up, and what it cannot be made to hide."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ragwitness.attest.bundle import OPENINGS, read_bundle
from ragwitness.attest.openings import OpeningsLog, WindowOpening, log_opening
from ragwitness.attest.trust import parse_trust
from ragwitness.attest.verdict import BundleVerdict, NotCheckedError
from ragwitness.attest.verifier import terms
from ragwitness.attest.verifier.bundle_evidence import VerifierCase, read_evidence
from ragwitness.attest.verifier.terms import numbers_of
from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.hashing import leaf_hash
from ragwitness.crypto.notes import Signers
from ragwitness.evidence.result import RESULT_TYPE
from ragwitness.privacy.odometer import worst_epsilon
from tests.support.attested import LOG, STRANGER

GOLDEN = Path(__file__).parents[2] / "golden" / "attest"
EVIDENCE = read_evidence(read_bundle((GOLDEN / "window-v3.zip").read_bytes()))
TRUST = parse_trust((GOLDEN / "trust-v3.json").read_bytes())
POLICY = EVIDENCE.policy
OWN = leaf_hash(EVIDENCE.entries[0])
NAME = f"{LOG.name}/{POLICY.window}"
"""Of the window's log; the provider's is the part before the window."""


def _log(folder, name="2026-W47", opened=OWN, key=LOG, **change):
    """Log a window; return the log's files."""
    policy = replace(POLICY, window=name, **change)
    return log_opening(folder, [replace(key, name=f"{LOG.name}/{name}")], opened, policy)


def _three(folder):
    """The golden window, another over the same indexes, and one over an index elsewhere."""
    first = _log(folder)
    second = _log(folder, "2026-W48", bytes([48]) * 32)
    elsewhere = {"ward": POLICY.tenants["clinic"]}
    return first, second, _log(folder, "2026-W49", bytes([49]) * 32, tenants=elsewhere)


def _case(files, seen=()):
    """The golden window, by a key that carries its name, with the log of a provider beside it."""
    held = OpeningsLog.parse(*(files[name] for name in OPENINGS)) if files else None
    notes = Signers((replace(LOG, name=NAME).public,))
    return VerifierCase(
        replace(EVIDENCE, openings=held), replace(TRUST, notes=notes), seen=list(seen)
    )


def _refused(case):
    with pytest.raises(VerificationError) as found:
        terms.openings(case)
    return found.value.check


def test_windows_over_one_index_add_and_another_index_is_named(tmp_path):
    case = _case(_three(tmp_path)[2])
    assert terms.openings(case) == "3 windows on example.org/log, this one among them"
    found = numbers_of(case.evidence, "clinic", listed=True)
    cap = POLICY.k_max * POLICY.queries
    mechanism = POLICY.tenants["clinic"]
    wanted = worst_epsilon(mechanism, POLICY.joint_delta, 2 * cap, POLICY.relation)
    assert (found.windows, found.together) == (2, wanted)
    assert found.exact < found.together < 2 * found.exact
    left = " ".join(terms.uncovered(case, listed=True))
    assert "ward (1), which are not counted" in left
    assert "Windows by another key or log than example.org/log" in left
    listed = terms.listed(case.evidence, case.provider)
    shown = BundleVerdict("pass", "", (), POLICY.window, (found,), listed=listed)
    title = RESULT_TYPE.report(shown).title
    assert "in this window (index clinic); in all windows over clinic (2)" in title
    assert "example.org/log up to its window 3" in title


def test_windows_of_different_noise_add_their_epsilons_at_shares_of_delta(tmp_path):
    _log(tmp_path)
    louder = replace(POLICY.tenants["clinic"], variance=1 << 23)
    case = _case(_log(tmp_path, "w2", tenants={"clinic": louder}))
    found = numbers_of(case.evidence, "clinic", listed=True)
    cap, half = POLICY.k_max * POLICY.queries, POLICY.joint_delta / 2
    each = (worst_epsilon(m, half, cap, "replace") for m in (POLICY.tenants["clinic"], louder))
    assert found.together == pytest.approx(sum(each))
    assert numbers_of(case.evidence, "archive", listed=True).windows == 1


def test_without_the_log_other_windows_are_not_known(tmp_path):
    with pytest.raises(NotCheckedError) as found:
        terms.openings(_case({}))
    assert not found.value.needed
    seen = _three(tmp_path)[2][OPENINGS[1]]
    with pytest.raises(NotCheckedError) as found:  # somebody saw one: then it is missing
        terms.openings(_case({}, [seen]))
    assert found.value.needed
    number = numbers_of(EVIDENCE, "clinic", listed=False)
    assert (number.windows, number.together) == (None, None)


def test_a_window_hidden_from_the_verifier_passes_nothing(tmp_path):
    _, two, three = _three(tmp_path)
    with pytest.raises(NotCheckedError, match="1 are hidden") as found:
        terms.openings(_case(two, [three[OPENINGS[1]]]))
    assert found.value.needed
    assert terms.openings(_case(three, [two[OPENINGS[1]]])).startswith("3 windows")


def test_an_entry_that_was_taken_out_is_missed(tmp_path):
    three = _three(tmp_path / "all")[2]
    _log(tmp_path / "less")
    _log(tmp_path / "less", "2026-W49")
    grown = _log(tmp_path / "less", "2026-W51")
    assert _refused(_case(grown, [three[OPENINGS[1]]])) == "openings.split_view"
    # The window that is verified is not in it at all.
    bare = _log(tmp_path / "bare", "2026-W48")
    assert _refused(_case(bare)) == "openings.missing"
    # Its entries are others than its checkpoint signs, or cut off.
    mixed = {OPENINGS[0]: grown[OPENINGS[0]], OPENINGS[1]: three[OPENINGS[1]]}
    assert _refused(_case(mixed)) == "openings.split_view"
    with pytest.raises(VerificationError) as found:
        _case({**three, OPENINGS[0]: three[OPENINGS[0]][:-1]})
    assert found.value.check == "openings.entries"


def test_another_policy_under_the_window_s_opening_is_refused(tmp_path):
    assert _refused(_case(_log(tmp_path, queries=2))) == "openings.missing"


def test_the_log_of_another_key_is_refused(tmp_path):
    assert _refused(_case(_log(tmp_path, key=STRANGER))) == "checkpoint.log_signature"
    with pytest.raises(InputError, match="another key"):
        _log(tmp_path, "2026-W48")


def test_an_opening_is_logged_once_and_an_old_copy_is_not_continued(tmp_path):
    folder = tmp_path / "log"
    once = _log(folder)
    assert _log(folder) == once
    shutil.copytree(folder, tmp_path / "old")
    note = _log(folder, "2026-W48")[OPENINGS[1]]
    (tmp_path / "old" / "checkpoint").write_bytes(note)
    with pytest.raises(VerificationError) as found:
        _log(tmp_path / "old", "2026-W50")
    assert found.value.check == "log.rolled_back"
    assert log_opening(tmp_path / "none", [LOG], OWN, POLICY) == {}  # a key without the window


@pytest.mark.parametrize(
    ("entry", "check"),
    [
        (b"{}", "openings.fields"),
        (b"[]", "openings.fields"),
        (b'{"open":"00","policy":{},"version":"ragwitness/opening/v1"}', "openings.fields"),
        (b'{"open":"00","policy":{},"version":"v2"}', "openings.version"),
        (b'{"open":1,"policy":{},"version":"ragwitness/opening/v1"}', "openings.version"),
        (
            b'{"open":"' + b"00" * 32 + b'","policy":{},"version":"ragwitness/opening/v1"}',
            "policy.version",
        ),
    ],
)
def test_what_is_no_opening_is_refused_by_name(entry, check):
    with pytest.raises(VerificationError) as found:
        WindowOpening.parse(entry)
    assert found.value.check == check


def test_an_entry_reads_as_it_was_written():
    opening = WindowOpening(OWN.hex(), POLICY)
    assert WindowOpening.parse(opening.encode()) == opening
