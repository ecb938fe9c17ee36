"""Signatures by the published vectors; key texts and files that nobody else may open."""

import base64
import stat

import pytest

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.keys import (
    KeyKind,
    PrivateKey,
    PublicKey,
    read_key,
    write_key,
)
from ragwitness.crypto.notes import Note, sign_note

RFC_8032 = [  # §7.1, tests 1 to 3: seed, public key, message, signature
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701c"
        "f9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0"
        "f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f76098"
        "4dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
]
# The example of Go's package golang.org/x/mod/sumdb/note.
GO_PUBLIC = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
GO_PRIVATE = "AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
GO_TEXT = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n"
)
GO_LINE = (
    "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpR"
    "Zb6KE6RyyBwJnAM=\n"
)


@pytest.mark.parametrize(("seed", "public", "message", "signature"), RFC_8032)
def test_ed25519_by_rfc_8032(seed, public, message, signature):
    key = PrivateKey("k", KeyKind.NOTE, bytes.fromhex(seed))
    assert key.public.material.hex() == public
    assert key.sign(bytes.fromhex(message)).hex() == signature
    key.public.verify(bytes.fromhex(message), bytes.fromhex(signature))


def test_a_note_of_another_implementation():
    data = base64.b64decode(GO_PRIVATE)
    key = PrivateKey("PeterNeumann", KeyKind(data[0]), data[1:])
    assert key.public.text == GO_PUBLIC
    assert PublicKey.parse(GO_PUBLIC) == key.public
    signed = sign_note(GO_TEXT, [key])
    assert signed.decode() == GO_TEXT + "\n" + GO_LINE
    line = Note.parse(signed).signatures[0]
    assert line.key_id.hex() == "c74f20a3"
    key.public.verify(GO_TEXT.encode(), line.data)


def test_no_bit_of_a_signature_or_key_can_change():
    key = PrivateKey("k", KeyKind.NOTE, bytes(32))
    signature = key.sign(b"m")
    for i in range(512):
        wrong = bytearray(signature)
        wrong[i // 8] ^= 1 << i % 8
        with pytest.raises(VerificationError) as found:
            key.public.verify(b"m", bytes(wrong))
        assert found.value.check == "signature.invalid"
    order = 2**252 + 27742317777372353535851937790883648493  # S + L is the classic second spelling
    s = int.from_bytes(signature[32:], "little") + order
    for wrong, check in (
        (signature[:32] + s.to_bytes(32, "little"), "signature.invalid"),
        (signature[:-1], "signature.size"),
        (signature + b"\x00", "signature.size"),
        (b"", "signature.size"),
    ):
        with pytest.raises(VerificationError) as found:
            key.public.verify(b"m", wrong)
        assert found.value.check == check


@pytest.mark.parametrize(
    "text",
    [
        "",
        "PeterNeumann",
        GO_PUBLIC + "A",
        GO_PUBLIC + "\n",
        GO_PUBLIC.replace("c74f20a3", "C74F20A3"),
        GO_PUBLIC.replace("c74f20a3", "c74f20a4"),
        GO_PUBLIC.replace("Peter", "Petra"),
        GO_PUBLIC.replace("ARpc", "BRpc"),
        GO_PUBLIC.replace("ARpc", "AhBc"),
        GO_PUBLIC.replace("10TW", "10"),
        "a b+c74f20a3+" + GO_PUBLIC.split("+", 2)[2],
        "k+00000000+",
    ],
)
def test_other_texts_are_no_public_key(text):
    with pytest.raises(InputError):
        PublicKey.parse(text)


def test_every_key_text_reads_back():
    for kind in (KeyKind.NOTE, KeyKind.COSIGNATURE):
        public = PrivateKey("example.org/log", kind, bytes(range(32))).public
        assert PublicKey.parse(public.text) == public
    one, other = (
        PrivateKey("n", kind, bytes(32)).public for kind in (KeyKind.NOTE, KeyKind.COSIGNATURE)
    )
    assert one.material == other.material
    assert one.key_id != other.key_id


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\u2003b", "a\x00b", "a\nb"])
def test_names_that_a_note_cannot_hold(name):
    with pytest.raises(InputError, match="cannot name a key"):
        PrivateKey.generate(name)


def test_a_key_file_is_private_and_never_overwritten(tmp_path):
    path = tmp_path / "log.key"
    key = PrivateKey.generate("example.org/log")
    write_key(path, key)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_key(path) == key
    with pytest.raises(InputError, match="never overwritten"):
        write_key(path, key)
    path.chmod(0o640)
    with pytest.raises(InputError, match="other users") as found:
        read_key(path)
    assert found.value.hint == f"Run: chmod 600 {path}"


def test_a_wrong_key_file_never_shows_its_content(tmp_path):
    path = tmp_path / "log.key"
    key = PrivateKey("example.org/log", KeyKind.NOTE, bytes(range(32)))
    write_key(path, key)
    good = path.read_text()
    secret = base64.b64encode(b"\x01" + key.seed).decode()
    assert secret in good
    for text in (good.replace("log+", "lag+"), good[:-3], good + "x", "PRIVATE+KEY+", "hello", ""):
        path.write_text(text)
        with pytest.raises(InputError) as found:
            read_key(path)
        assert secret[:12] not in str(found.value)
    with pytest.raises(InputError, match="cannot be read"):
        read_key(tmp_path / "none")
    assert secret not in repr(key)
    assert repr(key.seed) not in repr(key)


def _small_order() -> list[bytes]:
    """Every encoding of a point of order 1, 2, 4 or 8, those above the field included."""
    p = 2**255 - 19
    y8 = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
    ys = [0, 1, p - 1, p, p + 1, y8, p - y8]
    return [(y | sign << 255).to_bytes(32, "little") for y in ys for sign in (0, 1)]


@pytest.mark.parametrize("material", _small_order(), ids=lambda key: key.hex()[:8] + key.hex()[-2:])
def test_under_a_key_of_small_order_no_signature_holds(material: bytes) -> None:
    key = PublicKey("example.org/log", KeyKind.NOTE, material)
    for text in (b"one", b"another", b"a third", b"a fourth"):
        for point in _small_order():
            with pytest.raises(VerificationError, match=r"small order|no point"):
                key.verify(text, point + bytes(32))
    with pytest.raises(InputError, match=r"small order|no point"):
        PublicKey.parse(key.text)
