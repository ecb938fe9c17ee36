"""Timestamps of commitments, by an authority on a loopback port that openssl signs for.

The opponents: an authority that cannot be reached, that refuses, that stamps something else or
repeats an old token; a token put beside another plan; a signature by nobody who is trusted.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ragwitness.canary.draw import Design, DrawSecret
from ragwitness.canary.examples import Example
from ragwitness.canary.folder import STAMPED, CanaryPlan, make_plan, read_plan, write_plan
from ragwitness.core.errors import TargetResponseError, TargetUnreachableError, VerificationError
from ragwitness.core.run_files import SEAL_STAMP
from ragwitness.crypto import keys as stamps
from ragwitness.crypto.keys import Stamp
from ragwitness.evidence import log_client as timestamp
from ragwitness.evidence.case import PackKnown
from ragwitness.evidence.verifier import verify_pack
from tests.unit.evidence.forger import Forger, audited, called

pytest.importorskip("rfc3161_client")
_OPENSSL = shutil.which("openssl") or ""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not _OPENSSL, reason="openssl signs the tokens"),
]

_CONFIG = """
[req]
distinguished_name = name
[name]
[ext]
basicConstraints = critical,CA:false
keyUsage = critical,digitalSignature
extendedKeyUsage = critical,timeStamping
[tsa]
default_tsa = here
[here]
serial = {0}/serial
signer_cert = {0}/tsa.pem
signer_key = {0}/tsa.key
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256, sha384, sha512
ess_cert_id_chain = no
ess_cert_id_alg = sha256
"""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root, and an authority that it certified."""
    place = tmp_path_factory.mktemp("tsa")
    (place / "config").write_text(_CONFIG.format(place))
    (place / "serial").write_text("01\n")

    def run(*given: str) -> None:
        subprocess.run([_OPENSSL, *given], cwd=place, check=True, capture_output=True)

    run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem",
        "-subj", "/CN=root", "-days", "2")  # fmt: skip
    run("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "tsa.key", "-out", "tsa.csr", "-subj",
        "/CN=clock")  # fmt: skip
    run("x509", "-req", "-in", "tsa.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-out", "tsa.pem",
        "-days", "2", "-extfile", "config", "-extensions", "ext", "-CAcreateserial")  # fmt: skip
    return place


def stamp_commitment(folder: Path, plan: CanaryPlan, url: str) -> Stamp:
    again = f"ragwitness canary status {folder}"
    return timestamp.stamp(folder / STAMPED, plan.commitment, url, again)


def read_stamp(folder: Path, plan: CanaryPlan, roots: Path | None = None) -> Stamp:
    token = (folder / STAMPED).read_bytes()
    return stamps.read_stamp(token, plan.commitment, STAMPED, roots)


class Answering:
    """Answers with what ``reply`` makes of a request."""

    def __init__(self, reply: Any) -> None:
        self.reply = reply

    def __enter__(self) -> str:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args: Any) -> None: ...

            def do_POST(self) -> None:
                asked = self.rfile.read(int(self.headers["Content-Length"]))
                status, data = outer.reply(asked)
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def signed(place: Path, asked: bytes) -> tuple[int, bytes]:
    (place / "asked").write_bytes(asked)
    subprocess.run(
        [_OPENSSL, "ts", "-reply", "-config", "config", "-section", "here", "-queryfile", "asked",
         "-out", "reply"], cwd=place, check=True, capture_output=True,
    )  # fmt: skip
    return 200, (place / "reply").read_bytes()


@pytest.fixture
def planned(tmp_path: Path) -> tuple[Path, CanaryPlan]:
    return _planned(tmp_path / "plan", 0)


def _planned(folder: Path, seed: int) -> tuple[Path, CanaryPlan]:
    rows = [
        Example(f"e{i}", f"Text {i} begins. It goes on with nine words, {i}.", f"Q{i}?", "A, b")
        for i in range(30)
    ]
    write_plan(
        folder, make_plan(rows, Design(candidates=8), DrawSecret(bytes([seed] * 32), bytes(32)))
    )
    return folder, read_plan(folder)


def test_a_commitment_is_stamped_once_and_checked_by_who_is_trusted(
    planned: tuple[Path, CanaryPlan], authority: Path, tmp_path: Path
) -> None:
    folder, plan = planned
    with Answering(lambda asked: signed(authority, asked)) as url:
        first = stamp_commitment(folder, plan, url)
    assert not first.trusted
    found = read_stamp(folder, plan, authority / "ca.pem")
    assert (found.at, found.trusted) == (first.at, True)
    # The token that is there stays; no other authority is asked for a later time.
    assert stamp_commitment(folder, plan, "http://127.0.0.1:9").at == first.at
    # Put beside another plan it says nothing, and a root that did not sign is not believed.
    other, another = _planned(tmp_path / "other", 1)
    shutil.copy(folder / STAMPED, other / STAMPED)
    with pytest.raises(VerificationError, match="of another commitment"):
        read_stamp(other, another)
    stranger = tmp_path / "stranger.pem"
    subprocess.run(
        [_OPENSSL, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "k", "-out",
         str(stranger), "-subj", "/CN=stranger"], cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    with pytest.raises(VerificationError, match="not signed by an authority"):
        read_stamp(folder, plan, stranger)


def test_an_unreachable_authority_loses_nothing_and_says_what_to_do(
    planned: tuple[Path, CanaryPlan], authority: Path
) -> None:
    folder, plan = planned
    with pytest.raises(TargetUnreachableError, match="cannot be reached") as found:
        stamp_commitment(folder, plan, "http://127.0.0.1:9")
    assert "canary status" in str(found.value.hint)
    assert not (folder / STAMPED).exists()
    assert read_plan(folder) == plan
    with Answering(lambda asked: signed(authority, asked)) as url:
        stamp_commitment(folder, plan, url)


def test_an_authority_that_refuses_or_stamps_something_else_is_not_believed(
    planned: tuple[Path, CanaryPlan], authority: Path
) -> None:
    folder, plan = planned
    kept: list[bytes] = []

    def keep(asked: bytes) -> tuple[int, bytes]:
        status, data = signed(authority, asked)
        kept.append(data)
        return status, data

    other, another = _planned(folder.parent / "other", 1)
    with Answering(keep) as url:
        stamp_commitment(other, another, url)
    for reply in ((500, b""), (200, b"no token"), (200, kept[0]), (200, b"x" * 200_000)):
        with (
            Answering(lambda _, reply=reply: reply) as url,
            pytest.raises(TargetResponseError, match="timestamp authority"),
        ):
            stamp_commitment(folder, plan, url)
        assert not (folder / STAMPED).exists()
    # An old token of the same commitment is not the answer to this request either.
    (other / STAMPED).unlink()
    with (
        Answering(lambda _: (200, kept[0])) as url,
        pytest.raises(TargetResponseError, match="of another request"),
    ):
        stamp_commitment(other, another, url)


@pytest.mark.long
def test_a_seal_is_stamped_and_a_token_of_another_seal_is_refused(
    tmp_path: Path, authority: Path
) -> None:
    with Answering(lambda asked: signed(authority, asked)) as url:
        audited(tmp_path, "--timestamp", url)
        audited(tmp_path, "--timestamp", url, run="other")
    data: dict[str, Forger] = {}
    for run in ("run", "other"):
        assert called("seal", tmp_path / run, "-o", tmp_path / f"{run}.zip") == 0
        data[run] = Forger.of(tmp_path / f"{run}.zip", tmp_path / "auditor.key")
    honest = data["run"].packed()
    known = PackKnown(data["run"].key.public, roots=authority / "ca.pem")
    found = verify_pack(honest, known)
    assert found.outcome == "pass"
    # A stamp says how old the seal is at least, and nothing of how young the answers are.
    stamped = "the signer says so; the stamp shows that the seal is as old as"
    assert any(stamped in line for line in found.uncovered)
    bare = verify_pack(honest).uncovered
    assert any("the signer says so" in line for line in bare)
    assert not any(stamped in line for line in bare)
    data["run"].files[SEAL_STAMP] = data["other"].files[SEAL_STAMP]
    found = verify_pack(data["run"].packed(), known)
    assert found.failures[0].failure == "seal.timestamp"
