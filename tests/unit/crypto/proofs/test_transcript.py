"""Challenges depend on everything before them, and no two conversations share an input."""

from __future__ import annotations

from ragwitness.crypto.proofs.arithmetic import ProofTranscript, R


def test_every_part_and_every_border_between_parts_counts() -> None:
    def drawn(domain: str, statement: bytes, *parts: tuple[str, list[bytes]]) -> int:
        talk = ProofTranscript(domain, statement)
        for label, points in parts:
            talk.absorb_points(label, points)
        return talk.challenge("x")

    found = [
        drawn("a", b"s"),
        drawn("as", b""),
        drawn("", b"as"),
        drawn("a", b"s", ("l", [])),
        drawn("a", b"s", ("l", [b"12"])),
        drawn("a", b"s", ("l1", [b"2"])),
        drawn("a", b"s", ("l", [b"1"]), ("l", [b"2"])),
        drawn("a", b"s", ("l", [b"1"]), ("", [b"2"])),
    ]
    assert len(set(found)) == len(found)
    assert drawn("a", b"s", ("l", [b"1", b"2"])) == drawn("a", b"s", ("l", [b"12"]))
    assert all(0 <= value < R for value in found)


def test_a_message_after_a_challenge_changes_the_next_and_kinds_are_apart() -> None:
    talk, other = (ProofTranscript("a", b"s") for _ in range(2))
    first = talk.challenge("x")
    assert other.challenge("y") != first
    assert talk.challenge("x") != first
    one, two = (ProofTranscript("a", b"s") for _ in range(2))
    one.absorb_scalars("l", [1])
    two.absorb_points("l", [(1).to_bytes(32, "big")])
    assert one.challenge("x") != two.challenge("x")
    assert len(ProofTranscript("a", b"s").expand("bits", 100)) == 100
