"""Five contributors, one of them honest: what each of the others may try, and how it is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ragwitness.crypto.proofs import ceremony as rounds
from ragwitness.crypto.proofs.ceremony import (
    CEREMONY_FILE,
    ROUNDS,
    Ceremony,
    CeremonyTranscript,
    Step,
    begin,
    check,
    contribute,
    finish,
    move_on,
)
from ragwitness.crypto.proofs.ceremony_points import with_delta
from ragwitness.crypto.proofs.groth16 import Proof, holds
from ragwitness.crypto.proofs.groth16.zksnake import prove
from ragwitness.crypto.proofs.native import native_curve, to_native_g2
from ragwitness.crypto.proofs.points import G2, P, R
from ragwitness.crypto.proofs.prover_setup import load_prover_setup, make_setup
from ragwitness.crypto.proofs.setup import Shape, VerifierSetup
from ragwitness.errors import InputError, VerificationError
from tests.unit.crypto.proofs.ceremony_toys import CIRCUITS, SHAPE, wires

NAMES = ("ann", "bob", "cid", "dan", "eve")
HONEST = "cid"
OUTSIDE: G2 = (  # on the twist at x = 1, not in the group of order R
    (1, 0),
    (
        18278151005453108793778860132295291098363647455926340152056652516292830556603,
        5912654199736721486680175016176231956195085055698687135131307249486702594212,
    ),
)


@pytest.fixture(autouse=True)
def _small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "long" not in request.keywords:
        monkeypatch.setattr(rounds, "circuits", lambda shape: CIRCUITS)


@pytest.fixture(scope="module")
def story() -> dict[tuple[int, int], bytes]:
    """The files of an honest ceremony, by round and number of steps in it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "circuits", lambda shape: CIRCUITS)
        held = begin(SHAPE)
        files = {(1, 0): held.encode()}
        for number in (1, 2):
            for place, name in enumerate(NAMES, 1):
                held = contribute(Ceremony.parse(held.encode()), name)
                files[number, place] = held.encode()
            if number == 1:
                held = move_on(held)
                files[2, 0] = held.encode()
    return files


@pytest.mark.slow
def test_a_proof_made_under_the_finished_setup_holds(
    story: dict[tuple[int, int], bytes], tmp_path: Path
) -> None:
    held = Ceremony.parse(story[2, 5])
    verifier = finish(held, tmp_path / "setup")
    seal = verifier.ceremony
    assert seal is not None
    assert seal.contributors == (NAMES, NAMES)
    loaded = load_prover_setup(tmp_path / "setup")
    assert loaded.verifier == verifier
    for name, circuit in CIRCUITS.items():
        key = loaded.keys(f"{name}.key")
        values = wires(circuit, 11)
        publics = values[1 : 1 + circuit.publics]
        proof = prove(key, circuit, values)
        assert holds(key.verifying, publics, proof)
        assert not holds(key.verifying, [publics[0] + 1, *publics[1:]], proof)
        assert not holds(key.verifying, publics, Proof(proof.c, proof.b, proof.a))
    # Everybody who has the file gets the same setup, and its digest covers the transcript.
    data = (tmp_path / "setup" / "setup.json").read_bytes()
    check(Ceremony.parse((tmp_path / "setup" / CEREMONY_FILE).read_bytes()), data)
    assert VerifierSetup.parse(data) == verifier
    other = replace(verifier, ceremony=replace(seal, transcript="0" * 64))
    assert other.digest != verifier.digest
    assert replace(verifier, ceremony=None).digest != verifier.digest
    with pytest.raises(InputError, match="holds a setup already"):
        finish(held, tmp_path / "setup")


# --- what a contributor may try: each takes the ceremony so far, and hands on something false


def _raised(held: Ceremony, name: str, factors: dict[str, int]) -> Ceremony:
    """An honest step with chosen factors."""
    transcript = held.transcript.added(name, factors)
    if not held.keys:
        return replace(held, transcript=transcript, powers=held.powers.raised(factors))
    keys = {label: with_delta(key, factors[label]) for label, key in held.keys.items()}
    return replace(held, transcript=transcript, keys=keys)


def _factors(held: Ceremony, value: int) -> dict[str, int]:
    return dict.fromkeys(ROUNDS[len(held.transcript.rounds) - 1], value)


def wrong_power(held: Ceremony, name: str) -> Ceremony:
    made = contribute(held, name)
    if not made.keys:
        tau = [*made.powers.tau]
        tau[7] = tau[7] * 3
        return replace(made, powers=replace(made.powers, tau=tau))
    key = made.keys["norm"]
    points = [*key.private.points]
    points[1] = points[1] * 3
    false = replace(key, private=replace(key.private, points=points))
    return replace(made, keys={**made.keys, "norm": false})


def zero(held: Ceremony, name: str) -> Ceremony:
    return replace(held, transcript=held.transcript.added(name, _factors(held, 0)))


def identity(held: Ceremony, name: str) -> Ceremony:
    return _raised(held, name, _factors(held, 1))


def small_subgroup(held: Ceremony, name: str) -> Ceremony:
    made = contribute(held, name)
    small = to_native_g2(OUTSIDE)
    cofactor, rest = native_curve().G2() * 0, small
    for bit in bin((2 * P - R) // 10069 * R)[:1:-1]:
        cofactor, rest = (cofactor + rest if bit == "1" else cofactor), rest + rest
    assert not cofactor.is_zero()  # a point of order 10,069
    if not made.keys:
        tau_2 = [*made.powers.tau_2]
        tau_2[3] = tau_2[3] + cofactor
        return replace(made, powers=replace(made.powers, tau_2=tau_2))
    key = made.keys["link"]
    points = [*key.right_2.points]
    points[0] = points[0] + cofactor
    false = replace(key, right_2=replace(key.right_2, points=points))
    return replace(made, keys={**made.keys, "link": false})


def _steps(held: Ceremony, change: Callable[[list[Step]], list[Step]]) -> Ceremony:
    *before, steps = held.transcript.rounds
    transcript = replace(held.transcript, rounds=(*before, tuple(change([*steps]))))
    return replace(held, transcript=transcript)


def repeated(held: Ceremony, name: str) -> Ceremony:
    """The step of the one before, handed in again under another name."""
    return _steps(held, lambda steps: [*steps, replace(steps[-1], name=name)])


def taken_over(held: Ceremony, name: str) -> Ceremony:
    """The step of the one before, under another name."""
    return _steps(held, lambda steps: [*steps[:-1], replace(steps[-1], name=name)])


def removed(held: Ceremony, name: str) -> Ceremony:
    return _steps(contribute(held, name), lambda steps: [*steps[:-2], steps[-1]])


def reordered(held: Ceremony, name: str) -> Ceremony:
    made = contribute(held, name)
    return _steps(made, lambda steps: [*steps[:-2], steps[-1], steps[-2]])


def unknown_factor(held: Ceremony, name: str) -> Ceremony:
    """Points of another's numbers, with the proof of a number of one's own."""
    made, other = contribute(held, name), contribute(held, name)
    step, points = made.transcript.rounds[-1][-1], other.transcript.rounds[-1][-1].points
    transcript = _steps(made, lambda steps: [*steps[:-1], replace(step, points=points)]).transcript
    return replace(other, transcript=transcript)


def rolled_back(held: Ceremony, name: str) -> Ceremony:
    """The numbers of a step without the step: all who come later would add to it unseen."""
    return replace(contribute(held, name), transcript=held.transcript)


REFUSED = {
    wrong_power: ("ceremony.powers", "ceremony.keys"),
    zero: ("ceremony.zero",) * 2,
    identity: ("ceremony.identity",) * 2,
    small_subgroup: ("ceremony.subgroup",) * 2,
    repeated: ("ceremony.repeated",) * 2,
    taken_over: ("ceremony.proof",) * 2,
    removed: ("ceremony.chain",) * 2,
    reordered: ("ceremony.chain",) * 2,
    unknown_factor: ("ceremony.proof",) * 2,
    rolled_back: ("ceremony.powers", "ceremony.keys"),
}


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("name", [name for name in NAMES if name != HONEST])
@pytest.mark.parametrize("trick", REFUSED, ids=lambda trick: trick.__name__)
def test_each_of_the_others_in_turn_is_refused_by_name(
    story: dict[tuple[int, int], bytes],
    trick: Callable[[Ceremony, str], Ceremony],
    name: str,
    number: int,
) -> None:
    place = NAMES.index(name)
    needs = place or trick not in (repeated, taken_over, removed, reordered)
    held = Ceremony.parse(story[number, place if needs else 1])  # the first has no one to rob
    who = name if needs else "ann again"
    with pytest.raises(VerificationError) as caught:
        # The next one, honest or not, checks before anything is added.
        contribute(Ceremony.parse(trick(held, who).encode()), "the next")
    assert caught.value.check == REFUSED[trick][number - 1]


def test_the_next_contributor_is_told_whose_step_it_is(
    story: dict[tuple[int, int], bytes],
) -> None:
    false = zero(Ceremony.parse(story[2, 3]), "dan")
    with pytest.raises(VerificationError, match="Round 2: 'dan' multiplied link by 0"):
        check(Ceremony.parse(false.encode()))


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-1],
        lambda data: data[: len(data) // 2],
        lambda data: data + b"\0",
        lambda data: b"",
        lambda data: data[:300] + bytes([data[300] ^ 1]) + data[301:],
    ],
)
def test_a_damaged_or_truncated_file_is_refused_by_name(
    story: dict[tuple[int, int], bytes], change: Callable[[bytes], bytes]
) -> None:
    refused("ceremony.file", lambda: Ceremony.parse(change(story[1, 2])))


def test_a_transcript_of_another_shape_is_refused(story: dict[tuple[int, int], bytes]) -> None:
    held = Ceremony.parse(story[1, 2])
    larger = replace(held, transcript=replace(held.transcript, shape=replace(SHAPE, slots=4)))
    refused("ceremony.size", lambda: Ceremony.parse(larger.encode()))
    other = replace(held, transcript=replace(held.transcript, shape=replace(SHAPE, reach=9)))
    refused("ceremony.chain", lambda: check(Ceremony.parse(other.encode())))


def test_the_transcript_of_another_ceremony_is_refused(
    story: dict[tuple[int, int], bytes], tmp_path: Path
) -> None:
    mine = Ceremony.parse(story[1, 1])
    theirs = contribute(begin(SHAPE), "zoe")
    refused("ceremony.powers", lambda: check(replace(mine, transcript=theirs.transcript)))
    done = Ceremony.parse(story[2, 5])
    other = contribute(Ceremony.parse(story[2, 4]), "zoe")
    refused("ceremony.setup", lambda: check(done, other.verifier.encode()))
    refused("ceremony.setup", lambda: check(mine, other.verifier.encode()))


def test_rounds_come_in_order(story: dict[tuple[int, int], bytes], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="after its contributions"):
        move_on(begin(SHAPE))
    with pytest.raises(InputError, match="finished once"):
        move_on(Ceremony.parse(story[2, 1]))
    for early in (story[1, 5], story[2, 0]):
        with pytest.raises(InputError, match="both rounds"):
            finish(Ceremony.parse(early), tmp_path / "setup")
    with pytest.raises(InputError, match="has contributed"):
        contribute(Ceremony.parse(story[1, 2]), "bob")


def test_moving_on_draws_nothing(story: dict[tuple[int, int], bytes]) -> None:
    assert move_on(Ceremony.parse(story[1, 5])).encode() == story[2, 0]


def test_keys_of_one_round_do_not_pass_for_the_others(
    story: dict[tuple[int, int], bytes],
) -> None:
    held = Ceremony.parse(story[2, 1])
    swapped = replace(held, keys=dict(zip(ROUNDS[1], [*held.keys.values()][::-1], strict=True)))
    refused("ceremony.keys", lambda: check(Ceremony.parse(swapped.encode())))
    bare = CeremonyTranscript(held.transcript.shape, held.transcript.rounds[:1])
    refused("ceremony.file", lambda: Ceremony.parse(replace(held, transcript=bare).encode()))
    # A delta outside the group does not even get to the pairing.
    key = held.keys["link"]
    false = replace(key, verifying=replace(key.verifying, delta=OUTSIDE))
    lied = replace(held, keys={**held.keys, "link": false})
    refused("ceremony.keys", lambda: Ceremony.parse(lied.encode()))


def refused(check: str, call: Callable[[], object]) -> None:
    with pytest.raises(VerificationError) as caught:
        call()
    assert caught.value.check == check


@pytest.mark.long
def test_an_answer_is_proved_under_the_setup_of_a_real_ceremony(tmp_path: Path) -> None:
    """The circuits themselves: LINK and the norms, proved and verified by the finished files."""
    from ragwitness.crypto.proofs.norms.verify import verify_norms
    from ragwitness.crypto.proofs.provider import commit_columns, prove_norms, prove_selection
    from ragwitness.crypto.proofs.selection.verify import verify_selections
    from tests.unit.crypto.proofs.selection.proving_link import claim_of

    shape = Shape(slots=2, top=1, dimension=2, scale=8, reach=50)
    held = contribute(contribute(begin(shape), "ann"), "bob")
    held = contribute(Ceremony.parse(move_on(held).encode()), "ann")
    verifier = finish(held, tmp_path / "many")
    setup = load_prover_setup(tmp_path / "many")
    secret = commit_columns(np.array([[3, -4], [5, 6]], np.int16), setup)
    verify_norms(verifier, secret.public, b"window", prove_norms(setup, secret, b"window"))
    claim = claim_of(secret, np.array([3, -4], np.int16), np.array([1, 50]))
    claim = replace(claim, ids=claim.ids[:1])
    proof = prove_selection(setup, secret, claim.query, claim.noise, claim.ids, claim.context)
    verify_selections(verifier, [claim], [proof])
    # Under another setup of the same shape it does not hold.
    other = make_setup(tmp_path / "one", shape)
    with pytest.raises(VerificationError):
        verify_selections(other, [claim], [proof])
