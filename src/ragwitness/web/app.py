"""The pages as an ASGI app: those that show runs, and those that begin one."""

from __future__ import annotations

import secrets
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ragwitness.core.errors import RagwitnessError
from ragwitness.core.server import is_loopback, listen, origin, serve_app
from ragwitness.report.formatting import visible
from ragwitness.web import pages
from ragwitness.web.begin import Beginnings, page_reply
from ragwitness.web.jobs import Jobs
from ragwitness.web.runs import Run, find_runs, is_run
from ragwitness.web.security import Access, Guard

_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="6.5"'
    ' fill="none" stroke="#a83a12" stroke-width="3"/><path d="M8 1.5a6.5 6.5 0 0 0 0 13z"'
    ' fill="#a83a12"/></svg>'
)
_GONE = "There is no such run; it may have been moved or deleted."


def create_app(
    roots: Sequence[Path], access: Access | None = None, jobs: Jobs | None = None
) -> ASGIApp:
    """Return the pages over run folders.

    Folders are looked at anew for each page, so runs under way can be followed.

    Args:
        roots: Run folders, or folders of runs.
        access: Decides about each request; None admits every one on the loopback.
        jobs: Tasks that the pages begin; None for pages that only read.
    """
    access = access or Access()
    begin = Beginnings(jobs, access, roots) if jobs else None
    # Six pages and three fixed files, all of them GET: nothing in these can change a run.
    site = _Site(roots, begin)
    routes = [
        Route("/", _page(site.runs)),
        Route("/run/{key}", _page(site.run)),
        Route("/run/{key}/document", _page(site.document)),
        Route("/run/{key}/rows", _page(site.rows)),
        Route("/run/{key}/asked", _page(site.asked)),
        Route("/style.css", _fixed(pages.style_sheet, "text/css")),
        Route("/live.js", _fixed(pages.script, "text/javascript")),
        Route("/icon.svg", _fixed(lambda: _ICON, "image/svg+xml")),
        *(begin.routes if begin else ()),
    ]
    # Every failure becomes a page with a sentence; a traceback could show paths and documents.
    handlers = {HTTPException: _refused, RagwitnessError: _failed, Exception: _broken}
    return Guard(Starlette(routes=routes, exception_handlers=handlers), access)


class _Site:
    """Pages over some folders; each takes the parameters of its address."""

    def __init__(self, roots: Sequence[Path], begin: Beginnings | None = None) -> None:
        self._roots, self._begin = tuple(roots), begin

    def runs(self, _given: dict[str, str]) -> str:
        return pages.list_page(
            find_runs(self._roots),
            [str(root.absolute()) for root in self._roots],
            self._begin.begun() if self._begin else None,
        )

    def run(self, given: dict[str, str]) -> str:
        run = self._find(given.get("key", ""))
        return pages.run_page(run, self._begin.of_run(run.folder) if self._begin else None)

    def document(self, given: dict[str, str]) -> str:
        run, name = self._find(given.get("key", "")), given.get("id", "")
        page = pages.document_page(run, name)
        if page is None:
            # Names come out of addresses, so they are made visible before they are repeated.
            visible_name = visible(name, 80)
            raise HTTPException(
                404, f"Nothing is known of the document {visible_name} in this run."
            )
        return page

    def rows(self, given: dict[str, str]) -> str:
        return pages.rows_page(self._find(given.get("key", "")), given)

    def asked(self, given: dict[str, str]) -> str:
        return pages.asked_page(self._find(given.get("key", "")), given)

    def _find(self, key: str) -> Run:
        # Keys are looked up among the runs that are there; no part of an address ever becomes a
        # path.
        run = next((run for run in find_runs(self._roots) if run.key == key), None)
        if run is None:
            raise HTTPException(404, _GONE)
        return run


def _page(make: Callable[[dict[str, str]], str]) -> Callable[[Request], Awaitable[Response]]:
    """Return the handler of a page; files are read in a thread."""

    async def handle(request: Request) -> Response:
        query = request.scope["query_string"].decode("latin-1")
        # Ids of documents may hold half a surrogate pair.
        try:
            parameters = parse_qs(query, keep_blank_values=True, errors="surrogatepass")
        except UnicodeDecodeError:
            raise HTTPException(400, "The address holds bytes that are no text.") from None
        named = {name: values[-1] for name, values in parameters.items()}
        return page_reply(await run_in_threadpool(make, {**named, **request.path_params}))

    return handle


def _fixed(text: Callable[[], str], kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def handle(_request: Request) -> Response:
        return Response(text(), media_type=kind)

    return handle


async def _refused(_request: Request, error: Exception) -> Response:
    status, detail = 500, ""
    if isinstance(error, HTTPException):
        status, detail = error.status_code, error.detail
    title = "Not found" if status == 404 else "This cannot be done"
    return page_reply(pages.message_page(title, detail), status)


async def _failed(_request: Request, error: Exception) -> Response:
    message = str(error) if isinstance(error, RagwitnessError) else ""
    return page_reply(pages.message_page("A file cannot be read", message))


async def _broken(_request: Request, error: Exception) -> Response:
    message = (
        f"{type(error).__name__}: the page could not be made. This is a mistake in Ragwitness."
    )
    return page_reply(pages.message_page("Something is wrong", message), 500)


# Serves the pages until Ctrl-C.

_say = partial(print, flush=True)  # a reader of a pipe waits for the address


def serve(
    runs: Sequence[Path],
    host: str = "127.0.0.1",
    port: int = 8765,
    *,
    announce: Callable[[str], None] = _say,
) -> None:
    """Serve pages over run folders until Ctrl-C, then return.

    Args:
        runs: Run folders, or folders of runs.
        host: Address to listen on; beyond the loopback the pages only read.
        port: Port; 0 takes a free one.
        announce: Called with each line for the user.

    Raises:
        InputError: The address cannot be listened on.
    """
    # Listening comes first, so that the address that is announced is one that answers.
    listener = listen(host, port)
    address, local = origin(host, listener), is_loopback(host)
    # The cookie has the port in its name, because browsers share cookies among ports.
    token = secrets.token_urlsafe(32)
    access = Access(token, f"ragwitness-{listener.getsockname()[1]}", loopback=local)
    # Runs are begun on this machine alone: elsewhere documents and keys would travel unencrypted.
    home = next((root for root in runs if not is_run(root)), None) if local else None
    jobs = Jobs(home, Path.cwd()) if home else None

    def ready() -> None:
        announce(f"Listening on {address}/?token={token}")
        announce("The address works once, for one browser.")
        if not local:
            announce("It shows the runs to everybody who has it or listens in: the connection is")
            announce("not encrypted. A tunnel to the loopback is safer, and can begin runs.")

    try:
        with _ends_in_order():
            serve_app(create_app(runs, access, jobs), listener, ready)
    finally:
        if jobs is not None:
            jobs.close()
    announce("Stopped.")


@contextmanager
def _ends_in_order() -> Iterator[None]:
    """Handle every signal that ends a program as Ctrl-C, such as that of a closed terminal.

    Runs are stopped then, and uploads deleted, which a sudden end would leave behind.
    """
    # Handlers can be set in the main thread alone.
    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        names = []
    before = {name: signal.getsignal(getattr(signal, name)) for name in names}
    try:
        for name in names:
            signal.signal(getattr(signal, name), signal.default_int_handler)
        yield
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)
