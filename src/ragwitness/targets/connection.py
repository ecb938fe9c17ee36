"""Proxies and certificates on the way to a service, as the environment names them."""

from __future__ import annotations

import functools
import importlib
import ipaddress
import os
import re
import ssl
import urllib.request
from contextlib import suppress
from pathlib import Path

import httpx2

from ragwitness.core.errors import InputError

_CERTIFICATES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_DIR")


def certificates(url: httpx2.URL) -> ssl.SSLContext:
    """Return whom to trust for a service: this machine's certificates, or those of a variable.

    Raises:
        InputError: The variable names nothing that can be read.
    """
    plain = url.scheme == "http" and is_loopback(url.host)
    named = next((name for name in _CERTIFICATES if os.environ.get(name)), "")
    return _context("" if plain else named)


@functools.cache  # reading those of the system takes longer than many a request
def _context(variable: str) -> ssl.SSLContext:
    if not variable:
        return httpx2.create_ssl_context(trust_env=False)
    path = os.environ[variable]
    try:
        if Path(path).is_dir():
            return ssl.create_default_context(capath=path)
        return ssl.create_default_context(cafile=path)
    except OSError as error:
        raise InputError(
            f"The environment variable {variable} names certificates that cannot be read:"
            f" {error.strerror or error}.",
            "Name a file of certificates (PEM) that is there; or unset it, and this machine's own"
            " are taken.",
        ) from None


def url_of(text: str) -> httpx2.URL | None:
    """Return the URL of a host that can be asked; None for any other text."""
    with suppress(httpx2.InvalidURL):
        url = httpx2.URL(text)
        if url.scheme in ("http", "https") and url.host and (url.port or 0) < 65536:
            return url
    return None


def proxy_of(url: httpx2.URL) -> tuple[str, httpx2.Proxy] | None:
    """Return the proxy to a service, behind the name of its variable; None where there is none.

    Raises:
        InputError: It cannot be used; its address is not quoted, as it may hold a password.
    """
    proxies = urllib.request.getproxies()
    scheme = next((name for name in (url.scheme, "all") if proxies.get(name)), None)
    if scheme is None or is_loopback(url.host) or _is_direct(url, proxies.get("no", "")):
        return None
    variable, address = f"{scheme.upper()}_PROXY", proxies[scheme]
    try:
        proxy = httpx2.Proxy(address if "://" in address else f"http://{address}")
        if not proxy.url.host:
            raise ValueError
        if proxy.url.scheme.startswith("socks"):
            importlib.import_module("socksio")
    except (ValueError, httpx2.InvalidURL, ImportError):
        raise InputError(
            f"The proxy that {variable} names cannot be used.",
            f"Write {variable}=http://HOST:PORT or socks5://HOST:PORT; NO_PROXY lists hosts that"
            " are asked without a proxy.",
        ) from None
    return variable, proxy


def _is_direct(url: httpx2.URL, listed: str) -> bool:
    """Whether a list of hosts, domains, addresses and networks says that no proxy is asked."""
    # The library reads ports, and the settings of Windows and macOS; not networks.
    if urllib.request.proxy_bypass(url.netloc.decode()):
        return True
    return any(_names(entry, url.host) for entry in re.split(r"[\s,]+", listed.lower()) if entry)


def _names(entry: str, host: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return entry == "*" or f".{host}".endswith(f".{entry.lstrip('*.')}")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, to which no proxy is needed."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def is_same_host(sent: httpx2.URL, following: httpx2.URL) -> bool:
    """Whether a redirect stays where it is, or only goes on to TLS at the usual port."""
    usual = sent.port is None and following.port is None and following.scheme == "https"
    same = sent.scheme == following.scheme and sent.port == following.port
    return sent.host == following.host and (same or usual)
