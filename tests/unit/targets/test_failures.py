"""Each cause of a failure, by a server that behaves so: what is said, and the next step."""

import asyncio
import datetime
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ragwitness.core.errors import (
    InputError,
    RagwitnessError,
    TargetResponseError,
    TargetUnreachableError,
)
from ragwitness.core.types import Answer, Query
from ragwitness.targets import connection
from ragwitness.targets.failures import check_header, find_key
from ragwitness.targets.openai import OpenAITarget
from ragwitness.targets.transport import RetryPolicy, TransportOptions
from tests.support.loopback import Step, chat_body, loopback, reply

SECRET = "s3cret-of-the-header"
OK = reply(chat_body("hello"))


def ask(url: str, **options: Any) -> Answer:
    given = {"retry": RetryPolicy(retries=0)} | options

    async def main() -> Answer:
        async with await OpenAITarget.connect(f"{url}#m", TransportOptions(**given)) as target:
            return await target.ask(Query("q", 5))

    return asyncio.run(main())


def failure(step: Step, **options: Any) -> RagwitnessError:
    with loopback(step) as server, pytest.raises(RagwitnessError) as caught:
        ask(server.url, **options)
    assert "doctor" not in str(caught.value)
    return caught.value


def said(message: str, status: int = 400, **more: str) -> bytes:
    return reply({"error": {"message": message} | more}, status)


@pytest.mark.parametrize(
    ("step", "what", "hint"),
    [
        (said("input too large", 413), "takes no request of this length", "shorter"),
        (said("This is not a chat model. Did you mean to use v1/completions?", 404),
         "has no chat for this model", "?endpoint=completions"),
        (said("no chat template is defined"), "has no chat for this model", "chat model"),
        (said("'bge-m3' does not support chat"), "has no chat for this model", "chat model"),
        (said("Missing required query parameter: api-version", 404), "asks for a query",
         "?api-version="),
        (reply(b"Client sent an HTTP request to an HTTPS server.", 400), "speaks TLS alone",
         "https://"),
        (said("The model `x` does not exist", 404), "knows no such model", "'#'"),
        (said("The API deployment does not exist", 404), "knows no such model", "in the URL"),
        (said("Not Found", 404), "knows no such address", "base URL"),
        (said("Method Not Allowed", 405), "knows no such address", "base URL"),
        (said("Something is odd", 422), "refused the request (status 422): Something is odd",
         "Its own words"),
        (said("missing X-API-Key", 401), "asks for the header X-API-Key",
         "--header X-API-Key=VARIABLE"),
        (said("no", 401), "asks for a key, and none was sent", "--header HEADER=NAME"),
        (said("The response was filtered", code="content_filter"), "by a content filter",
         "no score"),
        (said("Azure's content management policy triggered"), "by a content filter", "no score"),
        (reply(b"<html>Sign in</html>", kind="text/html"), "answered with HTML", "base URL"),
        (reply('{"choices": "für"}'.encode("latin-1")), "text that is not UTF-8", "charset"),
        (reply({}, 301, Location="http://other.example/v1?token=abc"),
         "redirect (status 301) to http://other.example/v1.", "Give that address"),
        (reply({}, 308, Location="http://other.example/v1"), "to http://other.example/v1.",
         "Give that address"),
    ],
)  # fmt: skip
def test_a_refusal_has_its_own_row(step: Step, what: str, hint: str) -> None:
    error = failure(step)
    assert what in error.message
    assert hint in error.hint


def _closed(connection: socket.socket) -> None:
    connection.close()


def _silent(connection: socket.socket) -> None:
    time.sleep(2)


def _endless(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\n\r\n")
    for _ in range(40):
        connection.sendall(b'data: {"choices": [{"delta": {"content": "on "}}]}\n\n')
        time.sleep(0.05)


def _trickling(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 X\r\nContent-Length: 999\r\n\r\n")
    for _ in range(40):
        connection.sendall(b"{")
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("step", "what", "hint"),
    [
        (_closed, "without sending", "server's log"),
        (_silent, "no complete reply within 0.3 s", "--timeout"),
        (_trickling, "no complete reply within 0.3 s", "--timeout"),
        (_endless, "the stream had not ended after 0.3 s", "[DONE]"),
    ],
)
def test_a_lost_connection_has_its_own_row(
    step: Callable[[socket.socket], None], what: str, hint: str
) -> None:
    started = time.monotonic()
    error = failure(step, read_timeout=0.3, connect_timeout=0.5)
    assert isinstance(error, TargetUnreachableError)
    assert what in error.message
    assert hint in error.hint
    assert time.monotonic() - started < 2


def test_a_body_of_200_megabytes_is_not_read_to_its_end() -> None:
    sent = 0

    def huge(connection: socket.socket) -> None:
        nonlocal sent
        connection.sendall(b"HTTP/1.1 200 X\r\nContent-Length: 209715200\r\n\r\n")
        for _ in range(200):
            connection.sendall(b" " * 2**20)
            sent += 1

    assert "more than 20 MB" in failure(huge).message
    assert sent < 60  # what the sockets hold besides


def test_where_nothing_listens_or_no_name_is_known() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for url, hint in (
        (f"http://127.0.0.1:{port}/v1", "the server runs"),
        ("http://no-such-host.invalid/v1", "host's name"),
        ("https://no-such-host.invalid/v1", "host's name"),
    ):
        with pytest.raises(TargetUnreachableError) as caught:
            ask(url)
        assert hint in caught.value.hint


# TLS: a server with a certificate of its own.


def _certificate(folder: Path, name: x509.GeneralName, days: int) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test")])
    end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(end - datetime.timedelta(days=30))
        .not_valid_after(end)
        .add_extension(x509.SubjectAlternativeName([name]), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = folder / "cert.pem", folder / "key.pem"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Asks a TLS server whose certificate is for a name, trusted or not."""
    listeners = []

    def asked(name: x509.GeneralName, days: int = 9, *, trusted: bool = False) -> Answer:
        cert, key = _certificate(tmp_path, name, days)
        connection._context.cache_clear()
        if trusted:
            monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def serve() -> None:
            try:
                connection, _ = listener.accept()
                with context.wrap_socket(connection, server_side=True) as secure:
                    secure.recv(65536)
                    secure.recv(65536)
                    secure.sendall(OK)
            except OSError:
                pass

        threading.Thread(target=serve, daemon=True).start()
        return ask(f"https://127.0.0.1:{listener.getsockname()[1]}/v1")

    yield asked
    connection._context.cache_clear()
    for listener in listeners:
        listener.close()


_HERE = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))


def test_a_certificate_of_its_own_names_the_way_out_which_works(tls: Callable[..., Any]) -> None:
    with pytest.raises(TargetUnreachableError, match=r"(?i)self.signed") as caught:
        tls(_HERE)
    assert "SSL_CERT_FILE" in caught.value.hint
    assert tls(_HERE, trusted=True).text == "hello"


def test_other_certificates_are_told_apart(tls: Callable[..., Any]) -> None:
    with pytest.raises(TargetUnreachableError) as caught:
        tls(x509.DNSName("rag.example"), trusted=True)
    assert "as the certificate names it" in caught.value.hint
    with pytest.raises(TargetUnreachableError) as caught:
        tls(_HERE, days=-1, trusted=True)
    assert "Renew" in caught.value.hint


def test_tls_where_none_is_spoken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(TargetUnreachableError) as caught:
            ask(f"https://127.0.0.1:{listener.getsockname()[1]}/v1")
    assert "http:// in place of" in caught.value.hint


# Headers of one's own.


def test_a_header_is_sent_and_its_value_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    with loopback(reply(chat_body(f"your key is {SECRET}"))) as server:
        assert ask(server.url, headers=("api-key=MY_KEY",)).text == "your key is [key]"
    assert f"api-key: {SECRET}" in server.headers[0]
    error = failure(said(f"bad key {SECRET}", 401), headers=("api-key=MY_KEY",))
    assert SECRET not in str(error)
    assert "MY_KEY" in error.hint
    assert SECRET not in repr(find_key("http://h/v1", None, ("api-key=MY_KEY",)))


def test_a_header_without_a_value_or_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(InputError, match="MY_KEY of the header api-key is not set"):
        find_key("http://h/v1", None, ("api-key=MY_KEY",))
    for pair in ("api-key", "api-key: x", "=MY_KEY", "a b=MY_KEY"):
        with pytest.raises(InputError, match="name of a header"):
            check_header(pair)
    with pytest.raises(InputError) as caught:
        TransportOptions(headers=(f"api-key={SECRET}",))
    assert SECRET not in str(caught.value)


def test_a_wait_beyond_the_limit_is_told_and_not_waited_for() -> None:
    error = failure(reply({}, 429, Retry_After="90"), read_timeout=60, retry=RetryPolicy(retries=3))
    assert isinstance(error, TargetResponseError)
    assert "asks to wait 90 s" in error.message
    assert "--timeout 90" in error.hint
