"""Options that several tasks or verbs share, each with its help text, declared once.

A task that means something else by an option declares its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from ragwitness.core.errors import InputError
from ragwitness.core.options import Arg, AskedAs, Only, Opt, PathRole, declared
from ragwitness.core.types import ANSWER_SECONDS, Document
from ragwitness.runner.budget import Budget

if TYPE_CHECKING:
    from ragwitness.core.workers import Cluster
    from ragwitness.rag.config import RagConfig
    from ragwitness.runner.rate_limiter import RateLimiter
    from ragwitness.targets.transport import Setback, TransportOptions

# Target and documents.

TARGET = (
    "The system to be audited: the base URL of an OpenAI-compatible endpoint"
    " (http://host:port/v1, with #MODEL where it has several). Or lab:CORPUS, a RAG system over"
    " that corpus in this process, with options after ?, e.g."
    " lab:corpus.jsonl?retrieval=minilm&k=4. Or hf:MODEL or gguf:FILE (a model alone),"
    " openai/MODEL, http/CONFIG.toml (any JSON service), openai-api/NAME/MODEL,"
    " python:MODULE:OBJECT, or replay/FILE (recorded answers). See docs/targets.md."
)
ADDRESS_ASKED = AskedAs(
    "System",
    "Address of the system",
    "The base URL of an OpenAI-compatible endpoint, such as http://127.0.0.1:8000/v1, with #MODEL"
    " where it has several. Query only systems that you are allowed to query.",
    "target",
)
Address = Annotated[str, PathRole.ADDRESS, Arg(help=TARGET)]
Documents = Annotated[
    str,
    PathRole.DOCUMENTS,
    Opt(
        help="The documents in question: a file (text, Word, PDF, HTML, EPUB, JSONL, CSV and"
        " others: docs/documents.md), a folder of those, pasted text, or - for standard input."
    ),
]
Secrets = Annotated[
    Path | None,
    PathRole.READS,
    Opt(help='A file of known secrets, JSONL rows {"text", "kind", "record"}.'),
]
Decoys = Annotated[
    Path | None,
    PathRole.READS,
    Opt(help="A file of texts that are made like the secrets and planted nowhere; the same rows."),
]


Texts = str | Path | Sequence[Document | str]
"""Documents as values, as plain texts, or as the path of a file or folder that holds them."""
PrivateCorpus = Annotated[
    Texts,
    PathRole.DOCUMENTS,
    Arg(help="The private records: a file or a folder, as in docs/documents.md."),
]


@dataclass(frozen=True, kw_only=True)
class HowRead:
    """How documents are read.

    Attributes:
        text_field: The field or column that holds the text of a document.
        encoding: The encoding of texts that are not in UTF-8, e.g. windows-1252.
    """

    text_field: Annotated[
        str | None,
        AskedAs(
            "Documents",
            "Column or field with the text",
            "For CSV and JSONL, where it is not called text or document.",
        ),
    ] = None
    encoding: Annotated[
        str | None,
        Opt(shown="recognised by their letters"),
        AskedAs(
            "Documents",
            "Encoding of texts that are not in UTF-8",
            "Such as windows-1252. Left empty, it is recognised where it can be.",
        ),
    ] = None


Paragraphs = Annotated[
    bool, Opt("--paragraphs", help="Take each paragraph of a text file as a document.")
]

# A RAG system in this process.

Retrieval = Annotated[
    str,
    PathRole.ADDRESS,
    Opt(
        help="How passages are found: lexical, minilm, hf:NAME or URL#MODEL (an embeddings"
        " endpoint)."
    ),
]
Generator = Annotated[
    str,
    PathRole.ADDRESS,
    Opt(
        help="The model that answers: reader (the embedded one), gguf:FILE, hf:NAME, URL#MODEL (a"
        " chat endpoint), or repeat, which is no model and repeats its passages."
    ),
]
Template = Annotated[
    str,
    PathRole.ADDRESS,
    Opt(
        help="How passages are shown to the model: plain, defended (S-RAG, Fig. 3), langchain,"
        " llamaindex, strict, cites, json, or FILE.toml; docs/chat-models.md shows them."
    ),
]
PassagesPerQuery = Annotated[int, Opt(help="The number of passages for each query.")]


@dataclass(frozen=True, kw_only=True)
class OwnSystem:
    """A RAG system in this process."""

    retrieval: Retrieval = "lexical"
    generator: Generator = "reader"
    k: PassagesPerQuery = 4
    template: Template = "plain"

    @property
    def rag(self) -> RagConfig:
        """Its settings.

        Raises:
            InputError: One cannot be used.
        """
        from ragwitness.rag.lab import rag_config

        names = [setting.name for setting in fields(OwnSystem)]
        return rag_config(**{name: getattr(self, name) for name in names})


# Methods and models.

AuditSettings = Annotated[
    Mapping[str, Mapping[str, object]] | Sequence[str] | None,
    Opt(
        "--set", metavar="AUDIT.NAME=VALUE", help="A setting of one of the audits. May be repeated."
    ),
]

Proxy = Annotated[
    str,
    PathRole.ADDRESS,
    Opt(
        help="The auditor's own language model, which ranks words by difficulty: reader (the"
        " embedded one), hf:NAME or gguf:FILE. A chat endpoint (URL#MODEL) writes and does not"
        " score: only methods that let a model write can use it."
    ),
]
ContactFinder = Annotated[
    str,
    PathRole.ADDRESS,
    Opt(
        help="The finder of personal details: auto or contacts (built-in), presidio, none,"
        " spacy:MODEL or hf:MODEL, or several with + between."
    ),
]
Prompts = Annotated[int, Opt(help="The most prompts that each attack may send.")]
AnswerTokens = Annotated[int, Opt(help="The most tokens of an answer.")]

# How a target is asked, and what may be spent on it.

AT_ONCE = (
    "The most queries that may be under way at once. It starts with 4 and takes more while the"
    " target keeps up."
)
AT_ONCE_ASKED = AskedAs(
    "Caps",
    "Queries at the same time",
    "At most so many. A run starts with 4, and sends fewer while the system is overloaded.",
)
PriceIn = Annotated[float | None, Opt(help="The price of a million tokens that the target reads.")]
PriceOut = Annotated[
    float | None, Opt(help="The price of a million tokens that the target writes.")
]
Timeout = Annotated[float, Opt(help="The seconds to wait for an answer.")]
KeyEnv = Annotated[
    str | None,
    Opt(
        metavar="NAME",
        help="The name of the environment variable that holds the API key. OPENAI_API_KEY is sent"
        " to api.openai.com alone.",
    ),
]
Headers = Annotated[
    list[str] | None,
    Opt(
        "--header",
        metavar="HEADER=NAME",
        help="A header of every request, with the name of the environment variable that holds its"
        " value, e.g. api-key=AZURE_KEY. May be given several times.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Caps:
    """Caps on the spending at a target.

    Attributes:
        max_queries: The most queries of the run, all its starts together.
        max_tokens: The most tokens of the run, read and written, all its starts together.
        max_cost: The most money of the run, by the prices below, all its starts together.
    """

    max_queries: Annotated[
        int | None,
        AskedAs(
            "Caps",
            "Cap on queries",
            "The run stops before it would pass this, and can be continued later.",
        ),
    ] = None
    max_tokens: int | None = None
    max_cost: Annotated[
        float | None,
        AskedAs("Caps", "Cap on cost", "Counted by the two prices below; it needs both."),
    ] = None
    price_in: Annotated[PriceIn, AskedAs("Caps", "Price of a million tokens read")] = None
    price_out: Annotated[PriceOut, AskedAs("Caps", "Price of a million tokens written")] = None

    @property
    def budget(self) -> Budget:
        """The caps and prices as a rate limiter takes them.

        Raises:
            InputError: A number cannot be used, or a cap lacks its prices.
        """
        return Budget(*(getattr(self, cap.name) for cap in fields(Caps)))


@dataclass(frozen=True, kw_only=True)
class Reached:
    """How a target is reached.

    Attributes:
        retries: The number of attempts after a failed request.
    """

    timeout: Timeout = ANSWER_SECONDS
    retries: int = 5
    key_env: Annotated[
        KeyEnv,
        AskedAs(
            "System",
            "Key of the system",
            "Only if it needs one. It is kept in memory until these pages end, and never written"
            " down or shown.",
            "key",
        ),
    ] = None
    header: Headers = None

    def transport(
        self, concurrency: int = 1, setback: Callable[[Setback], None] | None = None
    ) -> TransportOptions:
        """Return it as the target takes it.

        Args:
            concurrency: Connections at a time.
            setback: Called with every request that brought no answer.

        Raises:
            InputError: A number is out of range, or ``key_env`` is no name of a variable.
        """
        from ragwitness.targets.transport import RetryPolicy, TransportOptions

        return TransportOptions(
            read_timeout=self.timeout,
            retry=RetryPolicy(retries=self.retries),
            concurrency=concurrency,
            key_env=self.key_env,
            headers=tuple(self.header or ()),
            setback=setback,
        )


@dataclass(frozen=True, kw_only=True)
class Sending(Caps, Reached):
    """Caps, access to the target, and the number of queries under way."""

    concurrency: Annotated[int | None, Opt(help=AT_ONCE), AT_ONCE_ASKED] = 4

    @property
    def at_once(self) -> int:
        """The most queries that may be under way."""
        return 4 if self.concurrency is None else self.concurrency

    @contextmanager
    def limited(self, folder: Path | None) -> Iterator[tuple[RateLimiter, TransportOptions]]:
        """Open the rate limiter of a run, and the transport options of its target.

        Args:
            folder: Of the run; None keeps nothing.
        """
        from ragwitness.runner.rate_limiter import RateLimiter

        with RateLimiter.of_run(folder, self.budget, self.at_once, start=4) as limiter:
            yield limiter, self.transport(self.at_once, limiter.setback)


# Where results go.

RunPath = Annotated[
    Path | None,
    PathRole.FILLS,
    Opt(
        shown="a folder in ragwitness-runs, named by the inputs",
        help="The run folder. The same folder resumes the run; a finished result is never lost.",
    ),
]

# Evidence of a run that others can recompute.


@dataclass(frozen=True, kw_only=True)
class Sealing:
    """How a run is sealed, if it is.

    Attributes:
        seal: Sign before the first query what is asked about and how, with the key in this file,
            which is made where there is none. The run folder then keeps the documents, and
            ragwitness seal makes an evidence pack of it.
        runs_log: With --seal: a folder in which each sealed run is logged from its first query on,
            so that one that is thrown away shows.
        timestamp: With --seal: have the seal stamped by this timestamp authority (RFC 3161), which
            is sent its hash alone. It needs the extra [timestamp].
    """

    seal: Annotated[
        Path | None,
        PathRole.KEEPS,
        Opt(metavar="KEY"),
        Only("single"),
        AskedAs(
            "Evidence",
            "Seal the run before its first query",
            "The questions are signed before anything is sent. The page of the run then offers an"
            " evidence pack, which others can check by themselves.",
            "seal",
        ),
    ] = None
    runs_log: Annotated[Path | None, PathRole.KEEPS, Only("sealed")] = None
    timestamp: Annotated[str | None, Opt(metavar="URL"), Only("sealed")] = None


# Where models compute.


@dataclass(frozen=True, kw_only=True)
class Computing:
    """Where the language models of a run compute.

    Attributes:
        engine: Where language models compute: local (this process) or ray (a cluster).
        workers: ray: the number of processes that compute.
        worker_gpus: ray: the GPUs of each process; 0.5 shares one.
        ray_address: ray: the address of the cluster to join.
    """

    engine: Annotated[str, Only("single")] = "local"
    workers: Annotated[int, Only("ray")] = 4
    worker_gpus: Annotated[float, Only("ray")] = 0.0
    ray_address: Annotated[
        str | None, Opt(env="RAY_ADDRESS", shown="one on this machine"), Only("ray")
    ] = None

    @property
    def cluster(self) -> Cluster | None:
        """The Ray cluster that is asked for; None computes on this machine.

        Raises:
            InputError: There is no such engine, or a number is out of range.
        """
        from ragwitness.core.workers import Cluster

        if self.engine not in ("local", "ray"):
            raise InputError(f"There is no engine {self.engine!r}.", "Use local or ray.")
        if self.engine == "local":
            return None
        return Cluster(self.workers, self.worker_gpus, self.ray_address)


# An option that was given and that nothing would read is refused.
#
# Ignoring it would silently change the meaning of a command.


TRAITS: Mapping[str, tuple[str, str]] = {
    "single": ("does not apply to a collection", "Leave it out, or --collection."),
    "shadow": (
        "is for a shadow system, and {method} asks none",
        "Leave it out, or name a method that learns from one: --method s-rag:paper",
    ),
    "sealed": ("is for a sealed run", "Give a key: --seal auditor.key"),
    "ray": ("is for a Ray cluster", "Leave it out, or add --engine ray."),
    "private": (
        "is for a private method, and {method} is not differentially private",
        "Take --method private-evolution, or leave it out.",
    ),
    "looks": (
        "compares texts with the records. {method} must not do that: epsilon would not cover the"
        " texts that are withheld for it",
        "Leave it out.",
    ),
    "writes": (
        "is for texts that are written anew, and {method} copies what its records hold",
        "Leave it out.",
    ),
    "utility": ("is for measuring use, which --no-utility leaves out", "Leave one of them out."),
    "asks": ("is for what is asked, and stored transcripts were asked before", "Leave it out."),
}
"""Reasons why an option may be inapplicable, each with message and hint."""


def reject_inapplicable_options(task: Any, traits: Set[str], method: str = "") -> None:
    """Refuse an option that does not apply to a task with these traits.

    Args:
        task: A dataclass of this package.
        traits: Its properties: names of :data:`TRAITS`, ``"collection"``, ``"no known-out"``.
        method: Name of its method, for the message.

    Raises:
        InputError: Such an option was given.
    """
    for option in declared(type(task)):
        only = option.mark(Only)
        if only and not traits & {*only.traits} and getattr(task, option.name) != option.default:
            reason, hint = TRAITS[only.traits[0]]
            raise InputError(f"{option.option} {reason.format(method=method)}.", hint)


def refuse_types(task: Any) -> None:
    """Refuse a value of another type than a plain one that is declared: a program gave it.

    A path that a program gave as text becomes a path.

    Raises:
        InputError: A text, a number or a flag is something else.
    """
    for option in declared(type(task)):
        value = getattr(task, option.name)
        kinds = get_args(option.kind) if isinstance(option.kind, UnionType) else (option.kind,)
        kinds = tuple(get_origin(kind) or kind for kind in kinds)
        if Path in kinds and str not in kinds and isinstance(value, str):
            value = Path(value)
            object.__setattr__(task, option.name, value)
        # Documents have messages of their own.
        plain = {str, int, float, bool, Path, Sequence, Mapping, type(None)}
        if not {*kinds} <= plain or {Path, Sequence} <= {*kinds}:
            continue
        is_integer = isinstance(value, int) and float in kinds
        if not (isinstance(value, kinds) or is_integer) or (
            isinstance(value, bool) and bool not in kinds
        ):
            name = option.name
            raise InputError(f"{name} cannot be {value!r}.", f"{name} is {option.kind}.")
