"""Tasks under way: each is the verb itself, in a separate process.

Its output is read line by line and kept in memory. Stop is an interrupt, and the same command
resumes; the verb supports both.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from ragwitness.core.errors import ExitCode, RagwitnessError
from ragwitness.core.files import at_work
from ragwitness.core.options import write_options
from ragwitness.core.run_files import RESULT, SPENT
from ragwitness.report import formatting as fmt
from ragwitness.runner.budget import Budget, Use
from ragwitness.runner.response_store import index_of
from ragwitness.runner.score_store import finished_units
from ragwitness.web.forms import KEY_VARIABLE, Task, typed
from ragwitness.web.runs import spending_of
from ragwitness.web.uploads import Source

_log = logging.getLogger(__name__)

_ENDED = (ExitCode.PASS, ExitCode.FAILED, ExitCode.INCONCLUSIVE)
"""Codes of a verb that did what it was asked for; a verdict is no failure of the verb."""
_MOST_LINES, _MOST_JOBS = 20_000, 20
_PATIENCE = 30.0  # seconds that an interrupted verb may take to end
# The verb, with Ctrl-C as on a terminal: a shell that starts us in the background ignores it.
_PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "from ragwitness.cli.main import run; run()"
)


class Stage(StrEnum):
    """Where a task stands."""

    DRAFT = "draft"
    """Its form has mistakes."""
    CHECKING = "checking"
    REFUSED = "refused"
    """A look failed; nothing of the task was done."""
    READY = "ready"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"
    DONE = "done"


BUSY = (Stage.CHECKING, Stage.RUNNING, Stage.STOPPING)


class TakenError(RagwitnessError):
    """The act was done already, or by another tab or program."""


@dataclass(slots=True)
class Job:
    """One task, from its form to its end.

    Attributes:
        key: In addresses; drawn at random.
        task: Its kind.
        folder: Private folder with its uploads and files of options.
        answers: To its questions, as they were typed; keys are not among them.
        sources: Documents by question.
        problems: The mistake in an answer, by question.
        run: Folder of the run; set once it was looked at.
        stage: Where it stands.
        output: The last lines of the verb.
        failure: The failure with its reason, and the next step; empty while all is well.
        seen: The findings of the checks that wrote a file.
        began: When its process began, on the monotonic clock.
    """

    key: str
    task: Task
    folder: Path
    answers: dict[str, str] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    run: Path | None = None
    stage: Stage = Stage.DRAFT
    output: deque[str] = field(default_factory=lambda: deque(maxlen=_MOST_LINES))
    failure: tuple[str, str] = ("", "")
    seen: dict[str, Any] = field(default_factory=dict)
    began: float = 0.0
    _secret: str = field(default="", repr=False)
    _process: subprocess.Popen[str] | None = field(default=None, repr=False)

    @property
    def has_key(self) -> bool:
        """Whether a key of the system is held in memory; a form says so."""
        return bool(self._secret)

    def hold(self, secret: str) -> None:
        """Keep a key in memory, in place of an earlier one."""
        self._secret = secret

    @property
    def title(self) -> str:
        """Its name: by its documents and its method."""
        return self.run.name if self.run else self.task.title

    @property
    def doubtful(self) -> bool:
        """Whether the verb would ask before it begins."""
        return bool(self.seen.get("doubtful"))

    def options(self, only: Sequence[str] = ()) -> dict[str, Any]:
        """Return its answers as options of a verb.

        Args:
            only: Options that the verb has; all of them without any.
        """
        options: dict[str, Any] = {}
        for question in self.task.every:
            answer = self.answers.get(question.option, "")
            if question.form == "key":
                answer = KEY_VARIABLE if self._secret else ""
            elif question.option in self.sources:
                answer = str(self.sources[question.option].path)
            value = typed(question, answer)
            options[question.option] = [value] if question.several and value else value
        return {name: setting for name, setting in options.items() if not only or name in only}


class Jobs:
    """All tasks of these pages.

    Args:
        home: Folder in which new runs are made.
        base: Where the pages were started; paths are read from here.
    """

    def __init__(self, home: Path, base: Path) -> None:
        self.home, self.base = home.absolute(), base.absolute()
        self._jobs: dict[str, Job] = {}
        self._lock = threading.RLock()
        # Its owner alone can enter it, and it is gone with the pages.
        self._private = Path(tempfile.mkdtemp(prefix="ragwitness-view-"))

    def new(self, task: Task) -> Job:
        """Return a task without answers; the oldest that stands still makes room."""
        with self._lock:
            idle = [job for job in self._jobs.values() if job.stage not in BUSY]
            for old in idle[: max(0, len(self._jobs) - _MOST_JOBS + 1)]:
                del self._jobs[old.key]
                shutil.rmtree(old.folder, ignore_errors=True)
            key = secrets.token_urlsafe(9)
            self._jobs[key] = Job(key, task, self._private / key)
            return self._jobs[key]

    def find(self, key: str) -> Job | None:
        """Return a task by its key."""
        return self._jobs.get(key)

    def listed(self) -> list[Job]:
        """Return those that were checked at least, the newest first."""
        return [job for job in reversed(self._jobs.values()) if job.stage is not Stage.DRAFT]

    def at(self, run: Path) -> Job | None:
        """Return the task that is busy with a run folder, or was last."""
        jobs = [job for job in reversed(self._jobs.values()) if job.run == run]
        return next((job for job in jobs if job.stage in BUSY), jobs[0] if jobs else None)

    # One method a button. Each is one step under the lock, so that of two tabs one comes first.

    def check(self, job: Job) -> None:
        """Survey before anything begins: documents, system, price, power.

        Raises:
            TakenError: It is under way.
            RagwitnessError: Its files cannot be written.
        """
        with self._lock:
            self._refuse_busy(job)
            job.run = self.home / self._usual_name(job)
            job.failure, job.seen, job.problems = ("", ""), {}, {}
            job.output.clear()
            commands = [self._look(job, at) for at in range(len(job.task.looks))]
            if commands:
                self._begin(job, Stage.CHECKING, commands)
            else:
                self._begin(job, Stage.RUNNING, [self._verb(job, yes=False)])

    def start(self, job: Job, *, yes: bool) -> None:
        """Begin the task, or go on with it.

        Args:
            job: Which.
            yes: Go on although it can hardly decide anything.

        Raises:
            TakenError: It runs already, in another tab or another program, or is finished.
            RagwitnessError: It was not checked, or its files cannot be written.
        """
        with self._lock:
            self._refuse_busy(job)
            if job.stage not in (Stage.READY, Stage.STOPPED, Stage.FAILED):
                raise TakenError(
                    "This was not checked, or it is finished.", "Check it first, or begin another."
                )
            run = job.run or self.home
            if job.task.runs and job.stage is Stage.READY and (run / RESULT).exists():
                raise TakenError(
                    f"The run {run.name} was finished meanwhile.",
                    "Read its report, or go back and give this one another name.",
                )
            if job.task.runs and run.is_dir() and at_work(run / SPENT):
                raise TakenError(
                    f"Another program is at work in the run {run.name}.",
                    "Wait for it, or go back and give this one another name.",
                )
            if job.doubtful and not yes:
                raise TakenError(
                    "This audit can hardly decide anything, and nobody said to go on.",
                    "Tick the box above the button, or give more documents.",
                )
            job.failure = ("", "")
            job.output.clear()
            self._begin(job, Stage.RUNNING, [self._verb(job, yes=job.doubtful and yes)])

    def stop(self, job: Job) -> bool:
        """Interrupt what is under way; pressed again, nothing more happens.

        Returns:
            Whether this call has stopped it.
        """
        with self._lock:
            if job.stage not in (Stage.CHECKING, Stage.RUNNING):
                return False
            job.stage = Stage.STOPPING
            if (process := job._process) is not None:
                _interrupt(process)
                # One that does not listen ends all the same; its answers are on the disk.
                last = threading.Timer(_PATIENCE, _end, [process])
                last.daemon = True
                last.start()
            return True

    def forget(self, job: Job) -> bool:
        """Delete a task's uploads, files and key; its run stays. Not while it is under way."""
        with self._lock:
            if job.stage in BUSY:
                return False
            self._jobs.pop(job.key, None)
            shutil.rmtree(job.folder, ignore_errors=True)
            return True

    def close(self) -> None:
        """Stop everything, and delete what was uploaded."""
        with self._lock:
            busy = [job for job in self._jobs.values() if self.stop(job) or job.stage in BUSY]
            processes = [job._process for job in busy if job._process is not None]
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE / 3)
            _end(process)
        shutil.rmtree(self._private, ignore_errors=True)

    def _refuse_busy(self, job: Job) -> None:
        busy = job if job.stage in BUSY else self.at(job.run) if job.run else None
        if busy is not None and busy.stage in BUSY:
            raise TakenError(
                f"{busy.title} was started already, in another tab. It goes on; nothing was"
                " started twice.",
                "Follow it there.",
            )

    # Names and commands.

    def _usual_name(self, job: Job) -> str:
        """Name a run by its documents and its method, as no finished run is called."""
        source = job.sources.get(job.task.named_by)
        about = Path(source.name).stem if source else job.answers.get(job.task.named_by, "")
        how = {"audit": "method", "leak": "attacks"}.get(job.task.name, "")
        method = str(job.seen.get("method") or job.answers.get(how, ""))
        pieces = (about, job.task.name if how != "method" else "", method)
        words = [re.sub(r"[^\w+.]+", "-", word).strip("-._+") for word in pieces]
        name = "-".join(filter(None, words))[:70] or "run"
        number, usual = 1, name
        # An unfinished run of that name is gone on with; a finished one is left alone.
        while (self.home / name / RESULT).exists():
            number += 1
            name = f"{usual}-{number}"
        return name

    def _look(self, job: Job, at: int) -> list[str]:
        look = job.task.looks[at]
        path = job.folder / f"look-{at}.toml"
        write_options(path, job.options(look.options), "ragwitness view")
        named = {"folder": str(job.folder), "run": str(job.run)}
        flags = [flag.format_map(named) for flag in look.flags]
        return [*look.verb, "--config", str(path), *flags]

    def _verb(self, job: Job, *, yes: bool) -> list[str]:
        path = job.folder / (job.task.written or "run.toml")
        if not job.task.written:
            write_options(path, job.options(), "ragwitness view")
        folder = ["--run", str(job.run)] if job.task.runs else []
        flags = (*job.task.flags, *(["--yes"] if yes else []))
        return [*job.task.verb, "--config", str(path), *folder, *flags]

    # The process.

    def _begin(self, job: Job, stage: Stage, commands: list[list[str]]) -> None:
        job.stage, job.began, job._process = stage, time.monotonic(), None
        threading.Thread(target=self._work, args=(job, stage, commands), daemon=True).start()

    def _work(self, job: Job, stage: Stage, commands: list[list[str]]) -> None:
        """Run commands one after the other, up to the first that fails."""
        code = 0
        for number, command in enumerate(commands):
            # The findings of an earlier check are in its file; the output of the last one is shown.
            if number:
                job.output.clear()
            with self._lock:
                if job.stage is Stage.STOPPING:
                    break
                _log.info("begin %s: %s", job.title, " ".join(command[:2]))
                try:
                    process = job._process = self._spawn(command, job._secret)
                except OSError as error:
                    job.output.append(f"error: No process can be started: {error.strerror}.")
                    code = 1
                    break
            with process:
                for line in process.stdout or ():
                    job.output.append(line.rstrip())
            _log.info("end %s: exit code %s", job.title, process.returncode)
            if code := process.returncode:
                break
        with self._lock:
            self._conclude(job, stage, code)

    def _spawn(self, command: list[str], secret: str) -> subprocess.Popen[str]:
        # No terminal: lines and no bars. The key goes through the environment, which no other
        # account can read and no list of processes shows.
        quiet = {"PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1", "COLUMNS": "100"}
        loud = ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", KEY_VARIABLE)
        environment = {
            name: value for name, value in os.environ.items() if name not in loud
        } | quiet
        return subprocess.Popen(  # noqa: S603  # our own verb, and no shell
            [sys.executable, "-P", "-c", _PROGRAM, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            cwd=self.base,
            env=environment | ({KEY_VARIABLE: secret} if secret else {}),
            # Ctrl-C ends the pages, which stop their runs in order.
            start_new_session=True,
        )

    def _conclude(self, job: Job, stage: Stage, code: int) -> None:
        """Set the stage of a task after its process has ended."""
        job._process = None
        job.seen |= _object(job.folder / "seen.json")
        if job.stage is Stage.STOPPING:
            stopped = Stage.STOPPED if stage is Stage.RUNNING else Stage.REFUSED
            job.stage = Stage.DONE if stage is Stage.RUNNING and code == 0 else stopped
            if job.stage is Stage.REFUSED:
                job.failure = ("The check was stopped.", "Check again, or change the answers.")
            return
        if code in _ENDED:
            # The method is known now; a run is named by it before anybody sees that it is ready.
            if stage is Stage.CHECKING:
                job.run = self.home / self._usual_name(job)
            job.stage = Stage.READY if stage is Stage.CHECKING else Stage.DONE
            return
        job.stage = Stage.REFUSED if stage is Stage.CHECKING else Stage.FAILED
        job.failure = _failure(job.output, code)


_ERROR = re.compile(r"^error: (.*)(?:\n[ \t]*next: (.*))?", re.MULTILINE)


def _failure(output: Sequence[str], code: int) -> tuple[str, str]:
    """Return the failure of a verb with its reason, and the next step."""
    errors: list[tuple[str, str]] = _ERROR.findall("\n".join(output))
    if errors:
        return errors[-1]
    last_line = next((line for line in reversed(output) if line.strip()), "it said nothing")
    how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
    return (
        f"The process ended {how}: {fmt.visible(last_line, 300)}",
        "Go on, or look at its last lines.",
    )


def _object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _interrupt(process: subprocess.Popen[str]) -> None:
    with suppress(OSError):
        if os.name == "posix":
            process.send_signal(signal.SIGINT)
        else:
            process.terminate()


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        with suppress(OSError):
            process.kill()


# The progress of a run, from its folder.


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is.

    Attributes:
        done: Documents, prompts or answers so far.
        total: Of so many; 0 where that is not known.
        figures: Label and value, by a name for the page.
        news: A message for now; empty for none.
    """

    done: int
    total: int
    figures: Mapping[str, tuple[str, str]]
    news: str


def progress_of(job: Job) -> Progress:
    """Return how far a task is; a folder that is gone or broken becomes a message, not an error."""
    run, news = job.run, ""
    done, spent, answers = 0, Use(), 0
    if run is not None and job.task.runs:
        try:
            answers = index_of(run).counts().answers
            spent = sum(spending_of(run), Use())
            done = finished_units(run) if job.task.name == "audit" else answers
        except (RagwitnessError, OSError) as error:
            news = str(error)
    total = _total(job)
    figures = {} if not job.task.runs else _figures(job, done, total, answers, spent)
    waiting = next((line for line in reversed(job.output) if line.strip()), "")
    if not news and waiting.startswith("waiting: "):
        news = f"{waiting[9:10].upper()}{waiting[10:]}."
    figures["since"] = ("Running for", fmt.duration(time.monotonic() - job.began))
    return Progress(done, max(total, 0), figures, news)


def _total(job: Job) -> int:
    """Return how much there is to do; 0 where that is not known."""
    if job.task.name == "audit":
        return sum(int(job.seen.get(name, 0)) for name in ("documents", "known_out", "known_in"))
    if job.task.name == "leak" and job.answers.get("attacks") != "all":
        return int(job.answers.get("prompts") or 0)
    return 0


def _figures(job: Job, done: int, total: int, heard: int, spent: Use) -> dict[str, tuple[str, str]]:
    figures: dict[str, tuple[str, str]] = {}
    if job.task.name == "audit" and total:
        figures["done"] = ("Documents decided on", f"{done:,} of {total:,}")
    figures["heard"] = ("Answers kept", f"{heard:,}")
    # Each figure comes with its cap, if there is one.
    cap = job.answers.get("max-queries")
    figures["queries"] = (
        "Queries sent",
        f"{spent.queries:,}" + (f" of {int(cap):,}" if cap else ""),
    )
    figures["tokens"] = ("Tokens", f"{spent.tokens:,}")
    prices = [job.answers.get(name) for name in ("price-in", "price-out")]
    if all(prices):
        cost = Budget(price_in=float(prices[0] or 0), price_out=float(prices[1] or 0)).price(spent)
        cost_cap = job.answers.get("max-cost")
        figures["cost"] = ("Cost", f"{cost:.4g}" + (f" of {float(cost_cap):g}" if cost_cap else ""))
    return figures
