"""The bundle's one form: everything else is refused by name before anything in it is computed."""

import io
import random
import struct
import zipfile
from hashlib import sha256

import pytest

from ragwitness.attest.archive import contents, listing, pack
from ragwitness.attest.bundle import BUNDLE_VERSION, read_bundle, verify_note, write_bundle
from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.hashing import canonical, parse
from ragwitness.crypto.keys import KeyKind, PrivateKey
from ragwitness.crypto.notes import sign_note

KEY = PrivateKey("example.org/log", KeyKind.NOTE, bytes([1]) * 32)
OTHER = PrivateKey("example.org/log", KeyKind.NOTE, bytes([2]) * 32)
FILES = {
    name: name.encode() * 3
    for name in (
        "challenge.json",
        "embedder.json",
        "estimate.json",
        "log/close.checkpoint",
        "log/entries.bin",
        "log/open.checkpoint",
        "policy.json",
        "records/0.json",
        "records/0.proof",
        "records/12.json",
        "records/12.proof",
        "tenants/0/columns.bin",
        "tenants/0/index.json",
        "tenants/0/norms.bin",
        "vectors.bin",
    )
}


def _fails(data, *checks):
    with pytest.raises(VerificationError) as found:
        read_bundle(data)
    assert found.value.check in checks, (found.value.check, found.value.message)


@pytest.fixture(scope="module")
def bundle():
    return write_bundle("w1", FILES, [KEY])


def _packed(files):
    """A bundle with a manifest that fits its files, whatever they are."""
    digests = {name: sha256(data).hexdigest() for name, data in files.items()}
    manifest = canonical({"members": digests, "version": BUNDLE_VERSION, "window": "w1"})
    note = sign_note(f"{BUNDLE_VERSION}\n{sha256(manifest).hexdigest()}\n", [KEY])
    return pack({**files, "bundle.json": manifest, "bundle.note": note})


def test_a_bundle_reads_back_and_any_unzip_reads_it(bundle):
    found = read_bundle(bundle)
    assert (found.window, found.tenants, found.records) == ("w1", 1, (0, 12))
    assert dict(found.files) == FILES
    assert found.tenant(0, "index.json") == FILES["tenants/0/index.json"]
    verify_note(found, [KEY.public])
    with zipfile.ZipFile(io.BytesIO(bundle)) as other:  # an independent reader
        assert other.testzip() is None
        assert {n: other.read(n) for n in FILES} == FILES
        assert other.namelist() == sorted(other.namelist())


def test_the_same_files_give_the_same_bytes():
    backwards = dict(reversed(FILES.items()))
    assert write_bundle("w1", FILES, [KEY]) == write_bundle("w1", backwards, [KEY])


def test_only_the_log_s_key_signs_the_list_of_files(bundle):
    found = read_bundle(bundle)
    for keys in ([OTHER.public], [KEY.public, OTHER.public], []):
        with pytest.raises(VerificationError) as error:
            verify_note(found, keys)
        assert error.value.check == "bundle.signature"
    note = sign_note("ragwitness/bundle/v2\n" + "0" * 64 + "\n", [KEY])
    files = {"bundle.json": found.manifest, "bundle.note": note}
    other = read_bundle(pack({**FILES, **files}))
    with pytest.raises(VerificationError) as error:
        verify_note(other, [KEY.public])
    assert error.value.check == "bundle.note"


@pytest.mark.parametrize("name", sorted(FILES))
def test_every_file_is_needed(name):
    files = {other: data for other, data in FILES.items() if other != name}
    if name.startswith("tenants/"):
        files = {n: d for n, d in files.items() if not n.startswith("tenants/")} | {
            n: d for n, d in files.items() if n.startswith("tenants/")
        }
    _fails(_packed(files), "bundle.missing")
    with pytest.raises(InputError):
        write_bundle("w1", files, [KEY])


@pytest.mark.parametrize(
    "name",
    [
        "readme.txt",
        "tenants/0/rows.bin",
        "tenants/00/columns.bin",
        "tenants/200/columns.bin",
        "records/007.json",
        "records/1.txt",
        "Policy.json",
        "log/entries.bin.bak",
    ],
)
def test_a_file_that_does_not_belong_is_refused(name):
    _fails(_packed({**FILES, name: b"x"}), "bundle.extra")


def test_a_gap_between_tenants_is_a_missing_file():
    gap = {name.replace("/0/", "/2/"): data for name, data in FILES.items() if "tenants" in name}
    _fails(_packed({**FILES, **gap}), "bundle.missing")


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../x", "a/../b", "log//x", "a\\b", "C:x", "log/.", "", "x\x00y", "ü"]
)
def test_no_path_leads_out(name, bundle):
    """The zip is spliced by hand: the writer refuses such names itself."""
    with pytest.raises(InputError):
        pack({name: b""})
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as out:
        out.writestr("bundle.json", b"{}")
    data = buffer.getvalue()
    if len(name.encode("latin-1")) == len(name):
        forged = data.replace(b"bundle.json", name.encode("latin-1").ljust(11, b"/")[:11])
        _fails(forged, "bundle.name", "bundle.canonical")


def _zip(entries, method=zipfile.ZIP_STORED, **options):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as out:
        for name, data in entries:
            out.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, method)
        out.comment = options.get("comment", b"")
    return buffer.getvalue()


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_other_zips_are_refused_by_name(bundle):
    manifest = read_bundle(bundle).manifest
    entries = [("bundle.json", manifest), *sorted(FILES.items())]
    bomb = [("vectors.bin", bytes(50_000_000))]
    cases = {
        "bundle.compressed": _zip(bomb, zipfile.ZIP_DEFLATED),
        "bundle.zip": _zip(entries, comment=b"hello"),
        "bundle.duplicate": _zip([*entries, entries[3]]),
        "bundle.order": _zip(list(reversed(entries))),
    }
    for check, data in cases.items():
        _fails(data, check)
    for data in (
        b"",
        b"PK",
        bundle[:4],
        b"not a zip" * 9,
        bundle[:-1],
        bundle + b"\n",
        b"\n" + bundle,
    ):
        _fails(data, "bundle.zip")
    _fails(bundle[:1000] + bundle[-22:], "bundle.canonical")
    _fails(bundle[:4] + bundle[-22:], "bundle.canonical")


def test_nothing_hides_between_the_files(bundle):
    cut = listing(bundle)[5].start - 40
    _fails(bundle[:cut] + b"secret" + bundle[cut:], "bundle.canonical", "bundle.name")
    start = struct.unpack("<L", bundle[-6:-2])[0]
    end = bundle[start:-22]
    moved = bundle[:start] + b"secret" + end + bundle[-22:-6]
    _fails(moved + struct.pack("<LH", start + 6, 0), "bundle.canonical")


def test_sizes_that_are_only_claimed_are_refused(bundle):
    """A header or a directory that claims gigabytes costs nothing, and a zip64 marker is named."""
    start = struct.unpack("<L", bundle[-6:-2])[0]
    for size, check in ((0xFFFFFFFF, "bundle.zip64"), (0x7FFFFFFF, "bundle.canonical")):
        raw = bytearray(bundle)
        raw[18:26] = struct.pack("<LL", size, size)
        _fails(bytes(raw), check)
        raw = bytearray(bundle)
        raw[start + 20 : start + 28] = struct.pack("<LL", size, size)
        _fails(bytes(raw), "bundle.canonical")
    raw = bytearray(bundle)
    raw[-14:-10] = b"\xff\xff\xff\xff"
    _fails(bytes(raw), "bundle.canonical")


def test_more_files_than_a_bundle_holds_are_refused(bundle, monkeypatch):
    monkeypatch.setattr("ragwitness.attest.archive.MAX_FILES", 3)
    _fails(bundle, "bundle.files")


def test_a_file_above_its_limit_is_refused():
    big = {**FILES, "embedder.json": bytes((64 << 10) + 1)}
    _fails(_packed(big), "bundle.member_size")
    with pytest.raises(InputError, match=r"embedder\.json"):
        write_bundle("w1", big, [KEY])


def test_a_bundle_of_an_earlier_proof_system_is_named_before_its_files_are_judged():
    manifest = canonical({"members": {}, "version": "ragwitness/bundle/v1", "window": "w"})
    _fails(pack({"bundle.json": manifest, "setup.json": b""}), "bundle.earlier")


def test_a_bundle_with_proved_noise_is_left_to_the_release_that_checks_it():
    _fails(_packed({**FILES, "records/3.coins": b"points"}), "bundle.earlier")


def test_another_version_is_named_before_its_files_are_judged():
    manifest = canonical({"members": {}, "version": "ragwitness/bundle/v9", "window": "w"})
    _fails(pack({"bundle.json": manifest, "new/kind.of": b""}), "bundle.version")


@pytest.mark.parametrize(
    ("manifest", "check"),
    [
        (b'{"version":"a","version":"b"}', "bundle.manifest.duplicate"),
        (b'{"members":{},"version":"ragwitness/bundle/v2","window":1e3}', "bundle.manifest.number"),
        (b'{"members": {}}', "bundle.manifest.canonical"),
        (b"[" * 100_000, "bundle.manifest.depth"),
        (b"\xff", "bundle.manifest.utf8"),
        (b"[1]", "bundle.version"),
        (b'{"members":[],"version":"ragwitness/bundle/v2","window":"w"}', "bundle.manifest"),
        (
            b'{"members":{"a":"AA"},"version":"ragwitness/bundle/v2","window":"w"}',
            "bundle.manifest",
        ),
    ],
)
def test_a_list_of_files_has_one_text(manifest, check):
    _fails(pack({**FILES, "bundle.json": manifest, "bundle.note": b"x"}), check)


def test_a_file_with_another_digest_is_refused(bundle):
    files = contents(bundle, listing(bundle))
    _fails(pack({**files, "policy.json": b"{}"}), "bundle.digest")
    fewer = parse(files["bundle.json"], 1 << 20)
    del fewer["members"]["policy.json"]
    _fails(pack({**files, "bundle.json": canonical(fewer)}), "bundle.extra")


@pytest.mark.slow
def test_ten_thousand_flipped_bytes_are_all_refused(bundle):
    rng = random.Random(7)
    for _ in range(10_000):
        raw = bytearray(bundle)
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        try:
            found = read_bundle(bytes(raw))
            verify_note(found, [KEY.public])
        except VerificationError:
            continue
        pytest.fail("a flipped byte was accepted")
