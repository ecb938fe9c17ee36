"""The pages that begin a task: its questions, the check, how far it is, and its end."""

from __future__ import annotations

import hmac
import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from ragwitness.core.errors import InputError, RagwitnessError
from ragwitness.core.quotes import quote
from ragwitness.core.run_files import RESULT
from ragwitness.evidence.result import RESULT_TYPE as VERDICT
from ragwitness.evidence.sealing import pack_of
from ragwitness.report import formatting as fmt
from ragwitness.report.document import ReportDocument
from ragwitness.report.html import Cut
from ragwitness.web.forms import TASKS, Question, Task, typed
from ragwitness.web.jobs import BUSY, Job, Jobs, Stage, TakenError, progress_of
from ragwitness.web.pages import Begun, RunActs, message_page, render
from ragwitness.web.runs import find_runs, key_of
from ragwitness.web.security import LIVE_POLICY, Access
from ragwitness.web.uploads import (
    Form,
    Source,
    inside,
    keep_uploads,
    read_form,
    read_source,
    target_of,
)

_FORM_KEY = "form-key"
_KEY_FILE = "auditor.key"  # beside the runs
_WORDS = {
    Stage.CHECKING: "being checked",
    Stage.REFUSED: "not possible as it stands",
    Stage.READY: "checked, not started",
    Stage.RUNNING: "running",
    Stage.STOPPING: "stopping",
    Stage.STOPPED: "stopped",
    Stage.FAILED: "broken off",
    Stage.DONE: "finished",
}
_SHOWN_LINES = 12

Handler = Callable[[Request], Awaitable[Response]]


class Beginnings:
    """The pages that begin tasks.

    Args:
        jobs: The tasks.
        access: Whose forms are taken.
        roots: Run folders, or folders of runs.
    """

    def __init__(self, jobs: Jobs, access: Access, roots: Sequence[Path] = ()) -> None:
        self._jobs, self._access, self._roots = jobs, access, roots

    @property
    def routes(self) -> list[Route]:
        """The addresses; what changes anything is a POST."""
        return [
            Route("/begin", _in_thread(self._choose)),
            Route("/begin/{task}", _in_thread(self._ask)),
            Route("/begin/{task}", self._answer, methods=["POST"]),
            Route("/job/{key}", _in_thread(self._show)),
            Route("/job/{key}/now", _in_thread(self._now)),
            Route("/job/{key}/verdict", _in_thread(self._verdict)),
            Route("/job/{key}/{act}", self._act, methods=["POST"]),
            Route("/run/{key}/pack", self._pack, methods=["POST"]),
        ]

    def begun(self) -> Begun:
        """Return what the list of runs shows of it."""
        jobs = [(job.title, _WORDS[job.stage], f"/job/{job.key}") for job in self._jobs.listed()]
        return Begun(jobs, self._access.form_key)

    def of_run(self, run: Path) -> RunActs:
        """Return what these pages began in a run folder, and what they can do with it."""
        job = self._jobs.at(run)
        return RunActs(
            (f"/job/{job.key}", _WORDS[job.stage]) if job else None,
            _again(job) if job else ("", ""),
            self._access.form_key,
        )

    # The form.

    def _choose(self, _request: Request) -> Response:
        return page_reply(render("begin.html.j2", tasks=list(TASKS.values())))

    def _ask(self, request: Request) -> Response:
        # The form shows the answers of a task that was begun, else the usual ones.
        task, query = _task_of(request), request.query_params
        job = self._jobs.find(query.get("job", ""))
        if job is not None and job.task is not task:
            job = None
        usual = {question.option: question.usual for question in task.every if question.usual}
        return page_reply(
            render(
                "form.html.j2",
                task=task,
                job=job,
                answers=job.answers if job else usual,
                base=self._jobs.base,
                home=self._jobs.home,
                form_key=self._access.form_key,
            )
        )

    async def _answer(self, request: Request) -> Response:
        """Read a form, keep what it brings, and check it."""
        task = _task_of(request)
        async with self._form(request) as form:
            job = self._jobs.find(form.texts.get("job", ""))
            if job is None or job.task is not task:
                job = self._jobs.new(task)
            return await run_in_threadpool(self._take, job, form)

    def _take(self, job: Job, form: Form) -> Response:
        if job.stage in BUSY:
            return _taken(
                TakenError("This is under way, so its answers stay as they are.", "Stop it first."),
                job,
            )
        problems: dict[str, str] = {}
        # 1. The answers in words; a key goes to memory alone, and never to another system.
        before = job.answers.get("target")
        job.answers = {
            one.option: form.texts.get(one.option, "")
            for one in job.task.every
            if one.form not in ("documents", "key")
        }
        now = job.answers.get("target")
        if (secret := form.texts.get("key-env", "")) or before != now:
            job.hold(secret)
        # 2. Each answer, by its form.
        for question in job.task.every:
            try:
                self._check(job, question, form)
            except RagwitnessError as error:
                problems[question.option] = str(error)
        if problems:
            job.problems, job.stage = problems, Stage.DRAFT
            return _to(f"/begin/{job.task.name}?{urlencode({'job': job.key})}")
        # 3. The checks.
        try:
            self._jobs.check(job)
        except TakenError as error:
            return _taken(error, job)
        return _to(f"/job/{job.key}")

    def _check(self, job: Job, question: Question, form: Form) -> None:
        """Check one answer, and keep what was uploaded for it.

        Raises:
            InputError: It cannot be used.
        """
        answer = job.answers.get(question.option, "")
        if question.form == "documents":
            self._documents(job, question, form)
        elif question.form == "seal":
            # One key for all runs of a folder; the verb makes it where there is none.
            job.answers[question.option] = str(self._jobs.home / _KEY_FILE) if answer else ""
        elif question.needed and not answer:
            raise InputError("This is needed.")
        elif question.form == "target" and answer:
            address = target_of(answer, self._jobs.base)
            job.answers[question.option] = address
        elif question.form == "choice" and answer not in question.choices:
            raise InputError("This is none of the choices.")
        else:
            _refuse_number(question, answer)

    def _documents(self, job: Job, question: Question, form: Form) -> None:
        """Take an upload, else a path, else what was given before."""
        # An upload comes first, then a path, then the documents of an earlier try.
        path = form.texts.get(f"{question.option}-path", "")
        if files := form.files.get(question.option):
            job.sources.pop(question.option, None)
            stored = keep_uploads(files, job.folder / question.option)
            label = stored.name if len(files) == 1 else f"{len(files)} files"
            source = Source(stored, label, label, True)
        elif path:
            job.sources.pop(question.option, None)
            local = inside(self._jobs.base, path)
            source = Source(local, local.name, local.name, False)
        elif question.option in job.sources and "forget" not in form.texts:
            source = job.sources[question.option]
        elif question.needed:
            raise InputError(
                "Nothing was uploaded, and no path was given.",
                "Choose a file, or give the path of one on this machine.",
            )
        else:
            return
        if question.table:
            source = read_source(
                source,
                job.answers.get("text-field") or None,
                job.answers.get("encoding") or None,
                paragraphs=bool(job.answers.get("paragraphs")),
            )
        job.sources[question.option] = source

    # A task that was checked.

    def _show(self, request: Request) -> Response:
        job = self._job(request)
        if job.stage is Stage.DRAFT:
            return _to(f"/begin/{job.task.name}?{urlencode({'job': job.key})}")
        # Another tab may press a button while this page is made.
        stage, busy = job.stage, job.stage in BUSY
        run, report = job.run, _report_of(job)
        page = render(
            "job.html.j2",
            job=job,
            stage=stage.value,
            words=_WORDS[stage],
            busy=busy,
            now=progress_of(job) if busy else None,
            seen=job.seen,
            # Price and power come with the forecast of the chosen method.
            plan=(job.seen.get("forecast") or {}).get("methods", {}).get(job.seen.get("method")),
            quote=quote,
            lines=[line for line in job.output if line.strip()][-_SHOWN_LINES:],
            said=[] if report else [line for line in job.output if line.strip()],
            report_link=(f"/run/{key_of(run)}" if job.task.runs else f"/job/{job.key}/verdict")
            if run and report
            else "",
            report=report,
            again=_again(job),
            sealed=[line for line in job.output if line.startswith(("sealed: ", "key: "))],
            form_key=self._access.form_key,
        )
        reply = page_reply(page)
        if busy:
            reply.headers["Content-Security-Policy"] = LIVE_POLICY
        return reply

    def _verdict(self, request: Request) -> Response:
        """The whole verdict on a file that was checked."""
        job = self._job(request)
        report = None if job.task.runs else _report_of(job)
        if report is None:
            return _to(f"/job/{job.key}")
        return page_reply(
            render("verdict.html.j2", job=job, report=report, cut=Cut(), page_of=None)
        )

    def _now(self, request: Request) -> Response:
        """How far it is, for the script of the page."""
        job = self._job(request)
        # Numbers and words alone: the script puts them into the page as text.
        now = progress_of(job)
        return JSONResponse(
            {
                "stage": job.stage.value,
                "done": now.done,
                "total": now.total,
                "figures": {name: value for name, (_, value) in now.figures.items()},
                "news": fmt.visible(now.news, 600),
            }
        )

    async def _act(self, request: Request) -> Response:
        async with self._form(request) as form:
            yes = bool(form.texts.get("yes"))
        # One button, one act; a task that is busy refuses in words.
        job, act = self._job(request), request.path_params["act"]
        address = f"/job/{job.key}"
        try:
            if act == "check":
                await run_in_threadpool(self._jobs.check, job)
            elif act == "start":
                await run_in_threadpool(lambda: self._jobs.start(job, yes=yes))
            elif act == "stop":
                self._jobs.stop(job)  # pressed twice, it says where it stands
            elif act == "forget":
                if not self._jobs.forget(job):
                    raise TakenError("This is under way.", "Stop it first.")
                return _to("/")
            else:
                raise HTTPException(404, "There is no such button.")
        except TakenError as error:
            return _taken(error, self._jobs.at(job.run) or job if job.run else job)
        return _to(address)

    async def _pack(self, request: Request) -> Response:
        """The evidence pack of a sealed run, as a file."""
        async with self._form(request) as form:
            hide = bool(form.texts.get("hide"))
        key = request.path_params["key"]
        run = next(
            (candidate for candidate in find_runs(self._roots) if candidate.key == key), None
        )
        if run is None:
            raise HTTPException(404, "There is no such run.")
        name = Path(f"evidence-{key}{'-hidden' * hide}.zip")
        data, _, _ = await run_in_threadpool(pack_of, run.folder, name, hide=hide)
        named = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(data, media_type="application/zip", headers=named)

    @asynccontextmanager
    async def _form(self, request: Request) -> AsyncIterator[Form]:
        """Read a form of these pages.

        Raises:
            HTTPException: It does not hold what our forms hold.
        """
        async with read_form(request) as form:
            if not hmac.compare_digest(
                form.texts.get(_FORM_KEY, "").encode(), self._access.form_key.encode()
            ):
                raise HTTPException(
                    403,
                    "This form is not of this start of the pages. Load it again, and send it anew.",
                )
            yield form

    def _job(self, request: Request) -> Job:
        job = self._jobs.find(request.path_params["key"])
        if job is None:
            raise HTTPException(
                404,
                "There is nothing under way by this address. The pages were started anew since, or"
                " it was forgotten. A run that has begun is in the list; the same documents under"
                " its name go on with it.",
            )
        return job


def _again(job: Job) -> tuple[str, str]:
    """Return button and address of the form of a finished task, with its documents."""
    label = job.task.again if job.stage is Stage.DONE else ""
    return label, f"/begin/{job.task.name}?{urlencode({'job': job.key})}"


def _report_of(job: Job) -> ReportDocument | None:
    """Return what a task found; None as long as there is nothing."""
    if job.stage is not Stage.DONE or job.run is None:
        return None
    if job.task.runs:
        return find_runs((job.run,))[0].report if (job.run / RESULT).exists() else None
    text = "\n".join(job.output)
    try:
        return VERDICT.report(VERDICT.opened(json.loads(text[text.index("{") :])))
    except (InputError, ValueError):
        return None


def _task_of(request: Request) -> Task:
    task = TASKS.get(request.path_params["task"])
    if task is None:
        raise HTTPException(404, f"The pages can begin: {', '.join(TASKS)}.")
    return task


_NUMBERS = {"whole": "a whole number", "number": "a number"}


def _refuse_number(question: Question, answer: str) -> None:
    """Refuse what is no number where one is asked for."""
    if not answer or question.form not in _NUMBERS:
        return
    try:
        value = float(typed(question, answer))
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise InputError(f"This is not {_NUMBERS[question.form]}.", "An example: 200")
    if question.form == "whole" and not value:
        raise InputError("This must be above 0.", "Leave it empty for no limit.")


def _in_thread(make: Callable[[Request], Response]) -> Handler:
    async def handle(request: Request) -> Response:
        return await run_in_threadpool(make, request)

    return handle


def _taken(error: TakenError, job: Job) -> Response:
    link = (f"To {job.title}", f"/job/{job.key}")
    return page_reply(message_page("Nothing was started", error.message, error.hint, link), 409)


def _to(address: str) -> Response:
    return RedirectResponse(address, 303)


def page_reply(text: str, status: int = 200) -> Response:
    """Return the reply with a page."""
    # Half a surrogate pair is named before it gets here; none may break a page.
    return HTMLResponse(text.encode("utf-8", "replace"), status)
