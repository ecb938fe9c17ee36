"""Checkpoints, cosignatures and receipts: what is read, whose signatures count, what is refused."""

import random

import pytest

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.hashing import EMPTY_ROOT, b64, parse_b64
from ragwitness.crypto.keys import KeyKind, PrivateKey, PublicKey
from ragwitness.crypto.merkle import MerkleLog
from ragwitness.crypto.notes import (
    Checkpoint,
    LogProof,
    Note,
    Signature,
    Signers,
    cosign,
    open_checkpoint,
    open_proof,
    sign_checkpoint,
    sign_note,
    verify_extension,
    verify_signature,
)

ORIGIN = "example.org/log"
LOG = PrivateKey(ORIGIN, KeyKind.NOTE, bytes([1]) * 32)
WITNESSES = [
    PrivateKey(f"witness.example/w{i}", KeyKind.COSIGNATURE, bytes([2 + i]) * 32) for i in range(3)
]
POLICY = Signers((LOG.public,), tuple(w.public for w in WITNESSES), quorum=2)
ENTRIES = [f"record {i}".encode() for i in range(23)]

# The example of C2SP tlog-cosignature: one log, one witness.
EXAMPLE = """\
example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGz\
Gku9nTo+zyWE+xeMcTOAYQ8=
— witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin\
1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==
"""


def _fails(call, *checks):
    with pytest.raises(VerificationError) as found:
        call()
    assert found.value.check in checks, found.value.check


@pytest.fixture
def log():
    found = MerkleLog()
    found.extend(ENTRIES)
    return found


def _signed(log, size=None):
    size = log.size if size is None else size
    checkpoint = Checkpoint(ORIGIN, size, log.root(size))
    data = sign_checkpoint(checkpoint, [LOG])
    for i, witness in enumerate(WITNESSES[:2]):
        data = cosign(None, data, (), Signers((LOG.public,)), witness, 1_700_000_000 + i)
    return data


def test_the_example_of_the_specification_reads_back():
    note = Note.parse(EXAMPLE.encode())
    assert note.encode() == EXAMPLE.encode()
    checkpoint = Checkpoint.parse(note.text)
    assert (checkpoint.origin, checkpoint.size) == ("example.com/behind-the-sofa", 20852163)
    assert checkpoint.text == note.text
    witness = note.signatures[1]
    assert (witness.key_id.hex(), len(witness.data)) == ("8d66cf3f", 8 + 64)
    assert int.from_bytes(witness.data[:8], "big") == 1679315147  # the time the text states


@pytest.mark.parametrize(
    ("size", "root", "line"),
    [
        (  # tree of the example above: the specification exchanged the origin alone
            20852163,
            "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=",
            "Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE"
            "+xeMcTOAYQ8=",
        ),
        (
            6476701,
            "mb8QLQIs0Z0yP5Cstq6guj87oXWeC9gEM8oVikmm9Wk=",
            "Az3grsLX85Gz+s1SiTbgkuqxgItqFq7gsMUEyVnrsa9LM7Us9S+1xbFIGu95949rj4nPRYfvimWEPWL+"
            "o3GeoWwOoAw=",
        ),
    ],
)
def test_checkpoints_of_a_public_log_verify(size, root, line):
    key = PublicKey.parse("sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8")
    origin = "go.sum database tree"
    data = f"{origin}\n{size}\n{root}\n\n— sum.golang.org {line}\n".encode()
    note = Note.parse(data)
    checkpoint = Checkpoint.parse(note.text)
    verify_signature(key, checkpoint, note.signatures[0])
    other = Checkpoint(origin, size + 1, checkpoint.root)
    _fails(lambda: verify_signature(key, other, note.signatures[0]), "signature.invalid")


def test_a_text_with_empty_lines_reads_back():
    for text in ("a\n\nb\n", "a\n\n", "\na\n"):
        data = sign_note(text, [LOG])
        note = Note.parse(data)
        assert (note.text, note.encode()) == (text, data)
        LOG.public.verify(text.encode(), note.signatures[0].data)


def test_a_cosignature_covers_the_text_of_the_specification(log):
    checkpoint = Checkpoint(ORIGIN, log.size, log.root())
    note = Note.parse(_signed(log))
    message = f"cosignature/v1\ntime 1700000000\n{checkpoint.text}".encode()
    WITNESSES[0].public.verify(message, note.signatures[1].data[8:])


def test_a_time_that_cannot_be_is_refused_though_it_is_signed(log):
    key, time = WITNESSES[0], 1 << 63
    checkpoint = Checkpoint(ORIGIN, log.size, log.root())
    message = f"cosignature/v1\ntime {time}\n{checkpoint.text}".encode()
    line = Signature(key.name, key.public.key_id, time.to_bytes(8, "big") + key.sign(message))
    _fails(lambda: verify_signature(key.public, checkpoint, line), "signature.time")


def test_a_checkpoint_counts_with_the_log_and_enough_witnesses(log):
    found = open_checkpoint(_signed(log), POLICY)
    assert found.checkpoint == Checkpoint(ORIGIN, log.size, log.root())
    assert dict(found.times) == {
        "witness.example/w0": 1_700_000_000,
        "witness.example/w1": 1_700_000_001,
    }


def _lines(data, *keep):
    head, tail = data.split(b"\n\n")
    lines = tail.splitlines(keepends=True)
    return head + b"\n\n" + b"".join(lines[i] for i in keep)


def test_signatures_that_are_missing_false_or_unknown(log):
    data = _signed(log)
    other = PrivateKey(ORIGIN, KeyKind.NOTE, bytes([9]) * 32)
    checkpoint = Checkpoint(ORIGIN, log.size, log.root())
    forged = sign_checkpoint(checkpoint, [other])
    _fails(lambda: open_checkpoint(_lines(data, 0, 1), POLICY), "checkpoint.quorum")
    _fails(lambda: open_checkpoint(_lines(data, 1, 2), POLICY), "checkpoint.log_signature")
    _fails(lambda: open_checkpoint(_lines(data, 0, 1, 1), POLICY), "note.duplicate")
    _fails(lambda: open_checkpoint(forged, POLICY), "checkpoint.log_signature")
    lax = Signers((LOG.public,))
    assert open_checkpoint(data, lax).checkpoint == checkpoint  # C2SP: ignore the unknown
    _fails(lambda: open_checkpoint(forged, lax), "checkpoint.log_signature")
    alien = sign_checkpoint(Checkpoint("example.org/other", 1, bytes(32)), [LOG])
    _fails(lambda: open_checkpoint(alien, lax), "checkpoint.origin")
    older = _signed(log, 22).split(b"\n\n")[0] + b"\n\n" + data.split(b"\n\n")[1]
    _fails(lambda: open_checkpoint(older, POLICY), "signature.invalid")


def test_an_unknown_keys_line_is_passed_over_however_often_it_stands_there(log):
    lax, checkpoint = Signers((LOG.public,)), Checkpoint(ORIGIN, log.size, log.root())
    data = sign_checkpoint(checkpoint, [LOG])
    known = LOG.public.key_id
    for name, key_id in (("unknown.example", b"abcd"), (ORIGIN, b"abcd"), ("other", known)):
        line = f"\N{EM DASH} {name} {b64(key_id + bytes(64))}\n".encode()
        for more in (line, line + line, line * 60):
            assert open_checkpoint(data + more, lax).checkpoint == checkpoint
    # Two lines of the log itself: two signatures of which one could be another statement.
    _fails(lambda: open_checkpoint(_lines(data, 0, 0), lax), "note.duplicate")


def test_no_byte_of_a_checkpoint_can_change(log):
    data, rng = _signed(log), random.Random(5)
    for place in range(len(data)):
        wrong = bytearray(data)
        wrong[place] ^= 1 << rng.randrange(8)
        with pytest.raises(VerificationError):
            open_checkpoint(bytes(wrong), POLICY)
    for wrong in (data + b"\n", data[:-1], b"\n" + data, data + b"x", data.replace(b"\n", b"\r\n")):
        with pytest.raises(VerificationError):
            open_checkpoint(wrong, POLICY)


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("o\n1\n", "checkpoint.format"),
        (f"o\n01\n{b64(bytes(32))}\n", "checkpoint.size"),
        (f"o\n-1\n{b64(bytes(32))}\n", "checkpoint.size"),
        (f"o\n{2**64}\n{b64(bytes(32))}\n", "checkpoint.size"),
        (f"o\n1\n{b64(bytes(31))}\n", "checkpoint.root"),
        (f"o\n1\n{b64(bytes(32))[:-1]}\n", "checkpoint.root"),
        (f"o\n1\n{b64(bytes(32))[:-2]}B=\n", "checkpoint.root"),
        (f"o\n0\n{b64(bytes(32))}\n", "checkpoint.root"),
        (f"o\n1\n{b64(EMPTY_ROOT)}\n", "checkpoint.root"),
        (f"o\n1\n{b64(bytes(32))}\n\nmore\n", "checkpoint.extension"),
        (f"\n1\n{b64(bytes(32))}\n", "checkpoint.format"),
    ],
)
def test_each_other_text_of_a_checkpoint_is_refused_by_name(text, check):
    _fails(lambda: Checkpoint.parse(text), check)


@pytest.mark.parametrize(
    ("data", "check"),
    [
        (b"", "note.format"),
        (b"text\n", "note.format"),
        (b"text\n\n", "note.format"),
        ("text\n\n— k AAAAAAA=".encode(), "note.format"),
        (b"\n\n\n", "note.format"),
        ("a\tb\n\n— k AAAAAAA=\n".encode(), "note.format"),
        (b"text\n\n- k AAAAAAA=\n", "note.signature_line"),
        ("text\n\n— k+1 AAAAAAA=\n".encode(), "note.signature_line"),
        ("text\n\n—  AAAAAAA=\n".encode(), "note.signature_line"),
        ("text\n\n— k AAAAAAA\n".encode(), "note.signature_line"),
        ("text\n\n— k AAAAAAB=\n".encode(), "note.signature_line"),
        ("text\n\n— k AAAA AAA=\n".encode(), "note.signature_line"),
        ("text\n\n— k AAAAAA==\n".encode(), "note.signature_line"),
        ("text\n\n— k AAAAAAA=\n".encode() + b"\xff\n", "note.utf8"),
        (b"text\n\n" + "— k AAAAAAA=\n".encode() * 65, "note.size"),
        (b"x" * (1 << 18) + b"\n\n", "note.size"),
    ],
)
def test_each_other_note_is_refused_by_name(data, check):
    _fails(lambda: Note.parse(data), check)


def test_texts_that_cannot_be_signed():
    for text in ("", "\n", "no newline", "tab\t\n", "\ud800\n"):
        with pytest.raises((InputError, UnicodeEncodeError)):
            sign_note(text, [LOG])
    with pytest.raises(InputError, match="cosignatures"):
        sign_note("text\n", [WITNESSES[0]])
    with pytest.raises(InputError, match="time"):
        sign_checkpoint(Checkpoint(ORIGIN, 0, EMPTY_ROOT), [WITNESSES[0]])
    for origin, size, root in (("", 1, bytes(32)), ("o\n", 1, bytes(32)), ("o", 0, bytes(32))):
        with pytest.raises(InputError):
            Checkpoint(origin, size, root)


def test_policies_that_cannot_be_kept():
    for call in (
        lambda: Signers(()),
        lambda: Signers((LOG.public, WITNESSES[0].public)),
        lambda: Signers((LOG.public, LOG.public)),
        lambda: Signers((LOG.public,), (WITNESSES[0].public,), quorum=2),
        lambda: Signers((LOG.public,), (PrivateKey("w", KeyKind.COSIGNATURE, LOG.seed).public,)),
        lambda: Signers(
            (LOG.public,),
            tuple(PrivateKey(n, KeyKind.COSIGNATURE, bytes(32)).public for n in ("a", "b")),
            quorum=2,  # a cosignature does not cover its name: one would count twice
        ),
    ):
        with pytest.raises(InputError):
            call()


def test_a_witness_signs_only_what_extends_what_it_signed(log):
    policy = Signers((LOG.public,))
    old = Checkpoint(ORIGIN, 10, log.root(10))
    data = sign_checkpoint(Checkpoint(ORIGIN, 23, log.root()), [LOG])
    signed = cosign(old, data, log.consistency(10), policy, WITNESSES[0], 1)
    new = Checkpoint.of_note(signed)
    one = Signers((LOG.public,), (WITNESSES[0].public,), quorum=1)
    assert open_checkpoint(signed, one).checkpoint == new
    fork = MerkleLog()
    fork.extend([b"forged", *ENTRIES[1:]])
    split = sign_checkpoint(Checkpoint(ORIGIN, 23, fork.root()), [LOG])
    small = sign_checkpoint(Checkpoint(ORIGIN, 9, log.root(9)), [LOG])
    for wrong, path, check in (
        (split, fork.consistency(10), "log.consistency"),
        (small, (), "log.rolled_back"),
        (data, (), "log.path_length"),
    ):
        _fails(
            lambda w=wrong, p=path: cosign(old, w, p, policy, WITNESSES[0], 1),
            check,
        )
    _fails(lambda: cosign(new, split, (), policy, WITNESSES[0], 1), "log.split_view")
    _fails(lambda: cosign(None, data, (bytes(32),), policy, WITNESSES[0], 1), "log.path_length")
    _fails(lambda: verify_extension(Checkpoint("else", 10, old.root), new, ()), "checkpoint.origin")


def test_a_receipt_proves_its_record_offline(log):
    receipt = LogProof(7, log.inclusion(7), _signed(log)).encode()
    assert receipt.startswith(b"c2sp.org/tlog-proof@v1\nindex 7\n")
    assert LogProof.parse(receipt).encode() == receipt
    proof, signed = open_proof(receipt, ENTRIES[7], POLICY)
    assert (proof.index, signed.checkpoint.size) == (7, 23)
    _fails(lambda: open_proof(receipt, ENTRIES[8], POLICY), "log.inclusion")


def test_a_log_of_one_entry_has_a_receipt_without_hashes():
    log = MerkleLog()
    log.append(b"only")
    receipt = LogProof(0, (), _signed(log)).encode()
    assert open_proof(receipt, b"only", POLICY)[0].path == ()


def test_no_byte_of_a_receipt_can_change(log):
    receipt, rng = LogProof(7, log.inclusion(7), _signed(log)).encode(), random.Random(6)
    for place in range(len(receipt)):
        wrong = bytearray(receipt)
        wrong[place] ^= 1 << rng.randrange(8)
        with pytest.raises(VerificationError):
            open_proof(bytes(wrong), ENTRIES[7], POLICY)


def test_lines_of_a_receipt_dropped_doubled_or_exchanged(log):
    receipt = LogProof(7, log.inclusion(7), _signed(log)).encode()
    lines = receipt.splitlines(keepends=True)
    refused = 0
    for i in range(len(lines)):
        dropped = lines[:i] + lines[i + 1 :]
        doubled = [*lines[: i + 1], *lines[i:]]
        swapped = lines[:i] + lines[i : i + 2][::-1] + lines[i + 2 :]
        for wrong in (dropped, doubled, swapped):
            if wrong[:-3] == lines[:-3] and sorted(wrong) == sorted(lines):
                continue  # the order of the signatures says nothing and may change
            with pytest.raises(VerificationError):
                open_proof(b"".join(wrong), ENTRIES[7], POLICY)
            refused += 1
    assert refused == 3 * len(lines) - 3


@pytest.mark.parametrize(
    ("head", "check"),
    [
        (b"c2sp.org/tlog-proof@v2\nindex 7\n", "proof.format"),
        (b"c2sp.org/tlog-proof@v1\n", "proof.format"),
        (b"c2sp.org/tlog-proof@v1\nindex 07\n", "proof.index"),
        (b"c2sp.org/tlog-proof@v1\nindex -7\n", "proof.index"),
        (b"c2sp.org/tlog-proof@v1\nextra aGludA==\nindex 7\n", "proof.extra"),
        (b"c2sp.org/tlog-proof@v1\nextra x\nindex 7\n", "proof.extra"),
        (b"c2sp.org/tlog-proof@v1\nindex 7\nAAAA\n", "proof.hash"),
        (b"c2sp.org/tlog-proof@v1\nindex 7\n" + b"A" * 43 + b"=\n" * 1, "log.path_length"),
        (b"c2sp.org/tlog-proof@v1\nindex 7\n" + (b"A" * 43 + b"=\n") * 65, "proof.size"),
        (b"x" * (1 << 20), "proof.size"),
        (b"\xff\n", "proof.format"),
    ],
)
def test_each_other_receipt_is_refused_by_name(log, head, check):
    _fails(lambda: open_proof(head + b"\n" + _signed(log), ENTRIES[7], POLICY), check)


def test_base64_has_one_spelling():
    assert parse_b64(b64(b"\xfb\xff"), "c") == b"\xfb\xff"
    for text in ("-_8=", "+/9=", "+/8", "+/8= ", "+/8=\n", " +/8=", "+/8==", "=", "+/8=+/8="):
        _fails(lambda t=text: parse_b64(t, "c"), "c")


def test_extension_lines_are_read_and_covered_by_log_and_witness() -> None:
    """A checkpoint of another log (C2SP), its signatures made by the bare library."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    log = PrivateKey("other.example/log", KeyKind.NOTE, bytes([5]) * 32)
    witness = PrivateKey("w.example", KeyKind.COSIGNATURE, bytes([6]) * 32)
    body = f"other.example/log\n7\n{b64(bytes([9]) * 32)}\nbuild 2026.11\nregion eu\n"
    stamp = 1_700_000_000
    by_log = Ed25519PrivateKey.from_private_bytes(log.seed).sign(body.encode())
    message = f"cosignature/v1\ntime {stamp}\n{body}".encode()
    by_witness = Ed25519PrivateKey.from_private_bytes(witness.seed).sign(message)
    lines = (
        (log, by_log),
        (witness, stamp.to_bytes(8, "big") + by_witness),
    )
    note = body + "\n"
    for key, signature in lines:
        note += f"\N{EM DASH} {key.name} {b64(key.public.key_id + signature)}\n"
    signers = Signers((log.public,), (witness.public,), 1)
    signed = open_checkpoint(note.encode(), signers)
    assert signed.checkpoint.extensions == ("build 2026.11", "region eu")
    assert signed.checkpoint.text == body
    assert (witness.name, stamp) in signed.times
    # A line changed, dropped or added is under no signature.
    for bent in (
        note.replace("region eu", "region us"),
        note.replace("region eu\n", "", 1),
        note.replace("region eu\n", "region eu\nmore\n", 1),
    ):
        with pytest.raises(VerificationError):
            open_checkpoint(bent.encode(), signers)
