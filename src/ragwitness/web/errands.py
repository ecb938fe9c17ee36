"""What the pages can begin: for each errand its verb, its questions, and what is looked at first.

Nothing of an audit is done here. A question is an option of the verb under a name for people; the
answers become a file of options, and the verb runs with that file as it would on a terminal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ragwitness.extraction.registry import ATTACKS
from ragwitness.membership.registry import AUDITS

KEY_VARIABLE = "RAGWITNESS_TARGET_KEY"
"""Where a key that was typed stands, in the memory of the verb's process alone."""

Form = Literal["text", "documents", "target", "key", "whole", "number", "choice", "tick", "plan"]


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a form.

    Attributes:
        option: The verb's option that it answers, without dashes.
        label: The question.
        hint: What a stranger must know to answer it.
        form: How it is answered.
        needed: Whether it must be answered.
        usual: The answer that stands there already.
        choices: Answers to choose from, in words.
        table: Documents that other commands read as documents are read and counted at once; a
            file of examples is left to the verb.
    """

    option: str
    label: str
    hint: str = ""
    form: Form = "text"
    needed: bool = False
    usual: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    table: bool = False


@dataclass(frozen=True, slots=True)
class Survey:
    """A verb that looks before anything begins.

    Attributes:
        verb: Its words.
        options: Options of the errand that it has; empty for all of them.
        flags: What follows the file of options; ``{folder}`` stands for the errand's own folder.
    """

    verb: tuple[str, ...]
    options: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Errand:
    """Something that can be begun.

    Attributes:
        name: In addresses.
        title: What it is called.
        asks: The question that it answers.
        does: What it does, in a sentence or two.
        verb: What runs it.
        start: The word on the button that begins it.
        questions: In groups, each with its heading.
        looks: What is looked at first, in this order.
        fills: Option that takes the run folder; empty where it has none of its own.
        named_by: Question whose answer names the run.
        written: File of options that a look writes for the verb; empty for the answers themselves.
        after: The errand that follows, and what to say of it.
    """

    name: str
    title: str
    asks: str
    does: str
    verb: tuple[str, ...]
    start: str
    questions: Mapping[str, tuple[Question, ...]]
    looks: tuple[Survey, ...]
    fills: str = "run"
    named_by: str = "documents"
    written: str = ""
    after: tuple[str, str] = ("", "")

    @property
    def every(self) -> tuple[Question, ...]:
        """All questions in their order."""
        return tuple(one for group in self.questions.values() for one in group)


# Questions that several errands have.

_TARGET = Question(
    "target",
    "Address of the system",
    "The base URL of an OpenAI-compatible endpoint, such as http://127.0.0.1:8000/v1, with #MODEL"
    " where it has several. Query only systems that you are allowed to query.",
    "target",
    needed=True,
)
_KEY = Question(
    "key-env",
    "Key of the system",
    "Only if it needs one. It is kept in memory until these pages end, and never written down or"
    " shown.",
    "key",
)
_CAPS = (
    Question(
        "max-queries",
        "Most queries",
        "The run stops before it would pass this; it can be gone on with.",
        "whole",
    ),
    Question("max-cost", "Most money", "By the prices below; both are needed for it.", "number"),
    Question("price-in", "Price of a million tokens read", "", "number"),
    Question("price-out", "Price of a million tokens written", "", "number"),
    Question(
        "concurrency",
        "Most queries at a time",
        "How hard the system is pressed. It starts with 4 at most, and takes fewer by itself when"
        " the system says that it is too much.",
        "whole",
    ),
)
_FIELD = Question(
    "text-field",
    "Column or field with the text",
    "For CSV and JSONL, where it is not called text or document.",
)
_ENCODING = Question(
    "encoding",
    "Encoding of texts that are not in UTF-8",
    "Such as windows-1252. Left empty, it is recognised where it can be.",
)

_DOCTOR = Survey(("doctor",), ("target", "key-env"), ("--no-pilot", "--json", "{folder}/seen.json"))

_AUDIT = Errand(
    name="audit",
    title="An audit of documents",
    asks="Are my documents in that system's database?",
    does="It asks the system about each document and gives a verdict for each, with its error"
    " rate. Nothing is changed in the system.",
    verb=("audit",),
    start="Start the audit",
    questions={
        "Documents": (
            Question(
                "documents",
                "Documents in question",
                "Texts, Word, PDF, HTML, EPUB and other files, many at once; or a JSONL or CSV file"
                " with a field text.",
                "documents",
                needed=True,
                table=True,
            ),
            Question(
                "known-out",
                "Documents known to be outside",
                "Documents of the same source and kind that the system cannot hold, such as ones"
                " that were never given away. 20 at least; 100 are good. They calibrate the"
                " verdicts.",
                "documents",
                needed=True,
                table=True,
            ),
            _FIELD,
            _ENCODING,
            Question("paragraphs", "Take each paragraph of a text file as a document", form="tick"),
        ),
        "System": (_TARGET, _KEY),
        "Method": (
            Question(
                "method",
                "Method",
                "auto takes the best one that the system, the documents and the caps admit, and"
                " says why.",
                "choice",
                usual="auto",
                choices={"auto": "auto: choose for me"} | {name: name for name in AUDITS.names()},
            ),
            Question(
                "alpha",
                "Share of wrong accusations that is accepted",
                "0.05 means: of 100 documents that are called in, 5 may be outside on average.",
                "number",
                usual="0.05",
            ),
        ),
        "Caps": _CAPS,
    },
    # `init` asks the same questions on a terminal: it checks, prices, and writes the file.
    looks=(
        Survey(
            ("init",),
            (),
            ("--out", "{folder}/run.toml", "--replace", "--json", "{folder}/seen.json"),
        ),
    ),
    written="run.toml",
)

_LEAK = Errand(
    name="leak",
    title="A measurement of leakage",
    asks="What of my private records can be got out of that system?",
    does="It attacks the system with prompts and compares the answers with the records. Do this"
    " only to a system that you run, or may attack.",
    verb=("leak",),
    start="Start the attack",
    questions={
        "Records": (
            Question(
                "corpus",
                "Private records that the system holds",
                "Files of text, many at once, or a JSONL or CSV file. They stay on this machine;"
                " answers are compared with them.",
                "documents",
                needed=True,
                table=True,
            ),
            Question(
                "background",
                "Texts like them that the system does not hold",
                "They show what is found by chance. Without them the counts have no zero line.",
                "documents",
                table=True,
            ),
            _FIELD,
            _ENCODING,
        ),
        "System": (_TARGET, _KEY),
        "Attack": (
            Question(
                "attacks",
                "Attacks",
                "composite is the usual one; all of them cost that many times the prompts.",
                "choice",
                usual="composite",
                choices={"all": "all of them"} | {name: name for name in ATTACKS.names()},
            ),
            Question(
                "prompts", "Most prompts of each attack", form="whole", usual="250", needed=True
            ),
        ),
        "Caps": _CAPS,
    },
    looks=(_DOCTOR, Survey(("leak",), (), ("--dry-run", "--run", "{run}"))),
    named_by="corpus",
)

_DRAW = Errand(
    name="draw",
    title="Canaries: draw",
    asks="Will a model be trained on what I let its system read? First step of three.",
    does="It draws a secret, chooses what is planted by it, and commits to it. Nothing is sent.",
    verb=("canary", "draw"),
    start="Draw the secret",
    questions={
        "Documents with questions": (
            Question(
                "examples",
                "Documents with questions",
                'JSONL, one {"id", "document", "question"} a line. A fifth of them is held out for'
                " the probes.",
                "documents",
                needed=True,
            ),
        ),
        "Design": (
            Question(
                "candidates",
                "Triggers to draw from",
                "The p-value can be no less than 1 in this number.",
                "whole",
                usual="128",
                needed=True,
            ),
            Question(
                "releases",
                "Looks that may decide",
                "One for each release of the model that you will probe.",
                "whole",
                usual="1",
                needed=True,
            ),
        ),
    },
    looks=(Survey(("canary", "draw"), (), ("--dry-run", "--out", "{run}")),),
    fills="out",
    named_by="examples",
    after=("plant", "Publish commitment.json of that folder first; then plant the canaries."),
)

_PLAN = Question(
    "folder",
    "Canaries that were drawn",
    "The folders beside your runs that hold a commitment.",
    "plan",
    needed=True,
)

_PLANT = Errand(
    name="plant",
    title="Canaries: plant",
    asks="Will a model be trained on what I let its system read? Second step of three.",
    does="It sends the documents with their questions to a service and votes on the answers.",
    verb=("canary", "plant"),
    start="Plant the canaries",
    questions={
        "Canaries": (_PLAN,),
        "Service": (
            Question(
                "service",
                "Address of the chat",
                _TARGET.hint + " Without an address the files are written, to plant by hand.",
                "target",
            ),
            _KEY,
        ),
        "Caps": _CAPS[:4],
    },
    looks=(Survey(("canary", "plant"), (), ("--dry-run",)),),
    fills="",
    named_by="folder",
    after=("probe", "When a new release of the model is out, probe it."),
)

_PROBE = Errand(
    name="probe",
    title="Canaries: probe",
    asks="Was this model trained on what I planted? Last step of three.",
    does="It asks the model about every trigger and says whether the planted one stands out. A"
    " finished probe is one look at the draw, and only so many may decide.",
    verb=("canary", "probe"),
    start="Start the probe",
    questions={
        "Canaries": (
            Question("plan", _PLAN.label, _PLAN.hint, "plan", needed=True),
            Question(
                "release",
                "Name of this release",
                "The name that you give to this release of the model.",
                usual="1",
                needed=True,
            ),
        ),
        "Model": (_TARGET, _KEY),
        "Caps": _CAPS,
    },
    looks=(_DOCTOR, Survey(("canary", "probe"), (), ("--dry-run", "--run", "{run}"))),
    named_by="plan",
)

ERRANDS: Mapping[str, Errand] = {one.name: one for one in (_AUDIT, _LEAK, _DRAW, _PLANT, _PROBE)}
"""Everything that can be begun, by name."""


def typed(question: Question, answer: str) -> Any:
    """Return an answer as the verb's file of options has it; None for none.

    Raises:
        ValueError: It is no number where one is asked for.
    """
    if question.form == "tick":
        return True if answer else None
    if not answer:
        return None
    if question.form == "whole":
        return int(answer)
    return float(answer) if question.form == "number" else answer
