"""The task of a leak measurement: how much private text attacks get out of a system."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ragwitness.core.errors import InputError
from ragwitness.core.options import Arg, AskedAs, Only, Opt, PathRole
from ragwitness.core.types import LeftOut
from ragwitness.evidence.sealing import seal_run
from ragwitness.runner import task_options as opt
from ragwitness.runner import task_runtime as runtime

if TYPE_CHECKING:
    from ragwitness.core.types import Document, Target
    from ragwitness.evidence.subject import SealSubject
    from ragwitness.leakage.attacks.base import Attack, Limits, Transcript
    from ragwitness.leakage.result import LeakResult
    from ragwitness.leakage.run import AttackRun
    from ragwitness.leakage.score.table import LeakPlan
    from ragwitness.runner.rate_limiter import RateLimiter
    from ragwitness.runner.worker import Progress
    from ragwitness.text.secrets import Secret


@dataclass(frozen=True)
class LeakTask(opt.HowRead, opt.Sending, opt.Sealing):
    """Attack a RAG system and measure how much of its private corpus comes back.

    Carried out, it gives every count with n, its interval, and the count to expect by chance.

    Attributes:
        target: The system under attack, as for an audit. A system in this process shows its owner
            what it retrieved.
        corpus: The private records that may leak: a JSONL or CSV file, or a folder of text files.
            Always needed.
        transcripts: Stored transcripts that are scored instead; nothing is asked.
        attacks: The attacks: all of an attacker, or names with commas between them. All are
            composite, composite-conditions, composite-contacts, forms and pide. By name alone:
            aimed, the test of the corpus's owner; system-prompt; memory; planted.
        information: Public texts from which prompts are cut.
        topic: A subject of the corpus; the first prompts begin with it.
        background: Texts that are like the corpus and that the target does not hold. They show what
            is found by chance.
        secrets: A file of known secrets, JSONL rows {"text", "kind", "record"}.
        decoys: A file of texts that are made like the secrets and planted nowhere; the same rows.
        contacts: Count the contact details in the corpus as secrets too; naming a finder does so
            as well.
        channels: The parts of a reply that count: all, or names with commas between them: text,
            thoughts, tools, sources, other fields.
        options: A setting of one of the attacks. May be repeated.
        seed: The seed of the prompts and of the resampling.
        run: The run folder. The same folder resumes the run; a finished result is never lost.

    Raises:
        InputError: The corpus, an attack or an option cannot be used.
        TargetError: The target cannot be reached or does not speak the protocol.
    """

    target: Annotated[
        object,
        PathRole.ADDRESS,
        Arg(help=opt.TARGET),
        opt.ADDRESS_ASKED,
    ] = None
    corpus: Annotated[
        opt.Texts,
        PathRole.DOCUMENTS,
        AskedAs(
            "Documents",
            "Private records that the system holds",
            "Files of text, many at once, or a JSONL or CSV file. They stay on this machine;"
            " answers are compared with them.",
            "documents",
        ),
    ] = ""
    _: KW_ONLY
    transcripts: Annotated[Path | None, PathRole.READS] = None
    attacks: Annotated[
        str | Sequence[str],
        Only("asks"),
        AskedAs(
            "Attack",
            "Attacks",
            "aimed finds most; all of an attacker cost several times the prompts.",
            "choice",
            {"all": "all of them"},
            names="ragwitness.leakage.attack_registry:ATTACKS",
        ),
    ] = "aimed"
    prompts: Annotated[
        opt.Prompts, Only("asks"), AskedAs("Attack", "Most prompts of each attack")
    ] = 250
    answer_tokens: Annotated[opt.AnswerTokens, Only("asks")] = 256
    information: Annotated[
        opt.Texts | None, PathRole.DOCUMENTS, Opt(shown="generated texts"), Only("asks")
    ] = None
    topic: Annotated[str | None, Only("asks")] = None
    background: Annotated[
        opt.Texts | None,
        PathRole.DOCUMENTS,
        AskedAs(
            "Documents",
            "Texts like them that the system does not hold",
            "They show what is found by chance. Without them the counts have no zero line.",
        ),
    ] = None
    secrets: Annotated[Path | None, PathRole.READS] = None
    decoys: Annotated[Path | None, PathRole.READS] = None
    contacts: bool = False
    pii: opt.ContactFinder = "auto"
    channels: str = "all"
    options: Annotated[
        Mapping[str, Mapping[str, object]] | Sequence[str] | None,
        Opt("--set", metavar="ATTACK.NAME=VALUE"),
        Only("asks"),
    ] = None
    seed: int = 0
    run: opt.RunPath = None

    def order(self, note: runtime.Note = runtime.warn) -> LeakWork:
        """Check the options and make the attacks; nothing large is read, and nothing is sent.

        Args:
            note: Receives remarks on reading the documents.

        Raises:
            InputError: An option cannot be used, or would not be read.
        """
        from ragwitness.leakage.attack_registry import OWNERS
        from ragwitness.leakage.attacks.base import Limits

        # 1. Types and combinations of options.
        opt.refuse_types(self)
        runtime.check_target(self.target)
        channels_of(self.channels)
        if self.pii == "none":
            raise InputError(
                "--pii none finds no detail.", "Leave it out, or name a finder: --pii contacts."
            )
        if isinstance(self.corpus, str) and not self.corpus:
            raise InputError(
                "There is no corpus to look for.", "Give the private records: --corpus."
            )
        if (self.target is None) == (self.transcripts is None):
            raise InputError(
                "Either a target is asked or stored transcripts are scored.",
                "ragwitness leak TARGET --corpus FILE, or ragwitness leak --transcripts FILE"
                " --corpus FILE",
            )
        if self.transcripts is not None and self.seal is not None:
            raise InputError("Stored transcripts cannot be sealed before their first query.")
        traits = {"asks": self.transcripts is None, "sealed": self.seal is not None}
        opt.reject_inapplicable_options(
            self, {"single", *(name for name, true in traits.items() if true)}
        )
        self.budget, self.transport()  # refuse what cannot be used
        # 2. The attacks, with the knowledge of the attacker: public texts, topic, own records.
        names = names_of(self.attacks)
        limits = Limits(self.prompts, self.answer_tokens, self.seed)
        texts = tuple(
            document.text for document in runtime.as_documents(self.information, note=note)
        )
        known_records: list[Document] = []
        secrets: list[Secret] = []
        if OWNERS in names:
            records, background = (
                runtime.as_documents(texts, self, note=lambda _: None)
                for texts in (self.corpus, self.background)
            )
            known_records = [*records, *self.aimed_at(names, len(records), background)[0]]
            secrets = self.listed_secrets(records)
        options = (
            self.options if isinstance(self.options, Mapping) else runtime.per_method(self.options)
        )
        knowledge = {
            "texts": texts,
            "topic": self.topic,
            "records": [d.text for d in known_records],
            "secrets": secrets,
        }
        attacks = [] if self.transcripts else attacks_of(names, limits, options, **knowledge)
        return LeakWork(self, names, limits, options, texts, attacks)

    def listed_secrets(self, records: Sequence[Document]) -> list[Secret]:
        """Return the secrets of the file, and the personal details in the records if wanted."""
        return listed_secrets(records, self.secrets, self.pii if self.finds_details else "")

    @property
    def finds_details(self) -> bool:
        """Whether personal details in the records are secrets too."""
        return self.contacts or self.pii != "auto"

    def aimed_at(
        self, names: Sequence[str], records: int, background: Sequence[Document]
    ) -> tuple[Sequence[Document], Sequence[Document]]:
        """Return the background texts that are asked for as the records are, and the others.

        The owner's test aims at both alike; else the background would not show the hits by chance.
        With few prompts only a part of the background is aimed at, so that they reach the records.
        """
        from ragwitness.leakage.attack_registry import OWNERS

        limit = max(self.prompts - records, records)
        if list(names) != [OWNERS] or len(background) <= limit:
            return background, ()
        order = random.Random(self.seed).sample(range(len(background)), len(background))
        aimed, others = (sorted(numbers) for numbers in (order[:limit], order[limit:]))
        return [background[n] for n in aimed], [background[n] for n in others]

    def carry_out(self) -> LeakResult:
        """Attack and score, and return the counts."""
        folder = runtime.own_folder(self.run, self.corpus, self.background)
        work = self.order()
        plan = work.plan()
        if self.transcripts is not None:
            return work.scored(plan, None)

        async def ask(target: Target) -> AttackRun:
            if self.seal is not None:
                seal_run(self, folder, self.target, target.name, lambda _: work.subject(plan))
            return await work.asked(target, limiter, folder)

        with self.limited(folder) as (limiter, transport):
            return work.scored(plan, runtime.with_target(self.target, ask, transport))


@dataclass(frozen=True)
class LeakWork:
    """A leak measurement whose options were checked.

    Attributes:
        task: The task.
        names: Registered names of the attacks, each once.
        limits: Limits of each attack.
        options: Fields of their configurations, by attack.
        texts: Public texts from which prompts are cut.
        attacks: The attacks; none where stored transcripts are scored.
    """

    task: LeakTask
    names: tuple[str, ...]
    limits: Limits
    options: Mapping[str, Mapping[str, object]]
    texts: tuple[str, ...]
    attacks: list[Attack]

    @property
    def identity(self) -> tuple[object, ...]:
        """The values that name a run folder: target, corpus and attacks.

        Another list of secrets, or another background, scores the same answers again, except of the
        owner's attack, whose prompts follow from both.
        """
        from ragwitness.leakage.attack_registry import OWNERS

        task = self.task
        knowledge: object = task.information
        if task.topic:
            knowledge = (task.information, task.topic)
        if OWNERS in self.names:
            aimed = task.background
            if aimed is not None and not isinstance(aimed, str | Path):
                texts = "\0".join(document.text for document in runtime.as_documents(aimed))
                aimed = sha256(texts.encode()).hexdigest()
            knowledge = (knowledge, aimed)
            if task.secrets or task.finds_details:
                knowledge = (knowledge, str(task.secrets), task.finds_details, task.pii)
        pairs = task.options
        if isinstance(pairs, Mapping):
            pairs = [f"{a}.{name}={v}" for a, fields in pairs.items() for name, v in fields.items()]
        sources = (task.target, task.transcripts, task.corpus)
        return (*sources, self.names, self.limits, sorted(pairs or ()), knowledge)

    def plan(self, note: runtime.Note = runtime.warn) -> LeakPlan:
        """Read the texts that answers are compared with: records, background, secrets and decoys.

        Raises:
            InputError: A file cannot be read, decoys stand alone, or the corpus holds other texts
                of the task.
        """
        from ragwitness.leakage.run import refuse_records

        task = self.task
        left_out: list[LeftOut | str] = []
        records = runtime.as_documents(task.corpus, task, left_out, note)
        if not records:
            raise InputError("There is no corpus to look for.", "Give the private records.")
        background = runtime.as_documents(task.background, task, left_out, note)
        # Texts that no prompt aimed at explain overlaps, and are no measure of chance.
        aimed, others = task.aimed_at(self.names, len(records), background)
        plan = plan_of(
            records,
            tuple(aimed),
            [*task.listed_secrets(records), *marks_of(self.attacks)],
            task.decoys,
            task.seed,
        )
        public = tuple(document.text for document in others)
        refuse_records("--information", self.texts, records)
        refuse_records("--background", public, records)
        public = (*self.texts, *public)
        counted = channels_of(task.channels)
        return dataclasses.replace(plan, left_out=tuple(left_out), public=public, channels=counted)

    @property
    def settings(self) -> dict[str, str]:
        """All settings, as label and value."""
        from ragwitness.text.pii import pii_finder

        task = self.task
        files = {
            "corpus": task.corpus,
            "background": task.background,
            "transcripts": task.transcripts,
        }
        settings = {k: str(file) for k, file in files.items() if isinstance(file, str | Path)}
        if self.attacks:
            settings |= settings_of(self.attacks, self.limits)
        if task.channels != "all":
            settings["channels that count"] = task.channels
        if task.finds_details:
            finder = pii_finder(task.pii)
            settings |= {
                "contact details found by": finder.name,
                "of which it misses": finder.misses,
            }
        return settings

    def subject(self, plan: LeakPlan) -> SealSubject:
        """Return the commitment before the first query."""
        from ragwitness.leakage.evidence import LeakOrder, subject_of

        task = self.task
        order = LeakOrder(
            str(task.target), self.names, self.options, self.limits, task.budget,
            tuple(plan.public), task.topic, self.settings,
        )  # fmt: skip
        return subject_of(order, plan)

    async def asked(
        self,
        target: Target,
        limiter: RateLimiter,
        folder: Path | None,
        progress: Progress | None = None,
    ) -> AttackRun:
        """Send the prompts of every attack."""
        from ragwitness.leakage.run import ask_attacks
        from ragwitness.rag.target import LabTarget

        # A system of ours in this process shows its passages to its owner: they say which records
        # were reached.
        view = target.for_owner() if isinstance(target, LabTarget) else target
        return await ask_attacks(
            self.attacks,
            self.limits.prompts,
            view,
            run=folder,
            progress=progress,
            limiter=limiter,
        )

    def transcripts(self, asked: AttackRun | None) -> Sequence[Transcript]:
        """Return the transcripts of a run, or else the stored ones.

        Raises:
            InputError: Stored transcripts cannot be read.
        """
        from ragwitness.leakage.attacks.base import read_transcripts

        return asked.transcripts if asked else read_transcripts(Path(str(self.task.transcripts)))

    def scored(self, plan: LeakPlan, asked: AttackRun | None) -> LeakResult:
        """Count what leaked."""
        from ragwitness.leakage.run import score_leaks

        return score_leaks(self.transcripts(asked), plan, asked=asked, settings=self.settings)


def channels_of(names: str) -> tuple[str, ...]:
    """Return the channels of a reply that count.

    Raises:
        InputError: One is unknown.
    """
    from ragwitness.leakage.score.table import CHANNELS

    counted = CHANNELS if names == "all" else tuple(map(str.strip, names.split(",")))
    if unknown := set(counted) - {*CHANNELS}:
        listing = ", ".join(CHANNELS)
        raise InputError(f"There is no channel {min(unknown)!r}.", f"Known: all, {listing}.")
    return counted


def names_of(attacks: str | Sequence[str]) -> tuple[str, ...]:
    """Return the registered names of attacks, each once.

    Args:
        attacks: ``all``, or names, in a list or with commas between.

    Raises:
        InputError: There is no attack.
    """
    from ragwitness.leakage.attack_registry import APART, ATTACKS

    listed = attacks.split(",") if isinstance(attacks, str) else attacks
    names = [name.strip() for name in listed if name.strip()]
    if names == ["all"]:
        return tuple(name for name in ATTACKS if name not in APART)
    if not names:
        raise InputError("No attack is named.", f"Known: all, {', '.join(ATTACKS)}.")
    return tuple(dict.fromkeys(names))


def attacks_of(
    names: Sequence[str],
    limits: Limits,
    options: Mapping[str, Mapping[str, object]],
    **knowledge: Any,
) -> list[Attack]:
    """Return the attacks with their options, and with the knowledge of the attacker.

    Raises:
        InputError: An attack, an option or a value is unknown, or an option's attack is not run.
    """
    from ragwitness.leakage.attack_registry import APART, build_attack

    if idle := sorted(set(options) - set(names)):
        raise InputError(
            f"--set {idle[0]}.… is for an attack that is not run.",
            f"Run now: {', '.join(names)}; choose with --attacks.",
        )
    if {*names} <= APART and (knowledge.get("texts") or knowledge.get("topic")):
        raise InputError(
            f"{names[0]} would not read --information or --topic.",
            "Add --attacks composite.",
        )
    return [build_attack(name, limits, options.get(name), **knowledge) for name in names]


def marks_of(attacks: Sequence[Attack]) -> list[Secret]:
    """Return the marks that attacks leave, which are looked for as secrets are."""
    return [secret for attack in attacks for secret in getattr(attack, "secrets", ())]


def documents_of(attacks: Sequence[Attack]) -> list[Document]:
    """Return the documents that attacks need in the system beforehand."""
    return [document for attack in attacks for document in getattr(attack, "documents", ())]


def listed_secrets(
    records: Sequence[Document], file: Path | None, finder: str = ""
) -> list[Secret]:
    """Return the secrets of a file, and the details that a finder finds in records.

    Raises:
        InputError: The file cannot be read, or the finder is unknown.
    """
    from ragwitness.text.pii import personal_of, pii_finder
    from ragwitness.text.secrets import read_secrets

    secrets = read_secrets(file) if file else []
    if finder:
        texts = ((document.id, document.text) for document in records)
        secrets += personal_of(texts, pii_finder(finder))
    return secrets


def plan_of(
    records: Sequence[Document],
    background: Sequence[Document],
    secrets: list[Secret],
    decoys_file: Path | None,
    seed: int,
) -> LeakPlan:
    """Return the texts that answers are compared with.

    Args:
        records: The private corpus.
        background: Texts that the target does not hold.
        secrets: Secrets in the records: private for certain.
        decoys_file: File of secrets that are in no record: a hit is chance.
        seed: Seed of the resampling.

    Raises:
        InputError: The decoys cannot be read or stand alone, or the corpus holds other texts of the
            task.
    """
    from ragwitness.leakage.run import refuse_records
    from ragwitness.leakage.score.table import LeakPlan
    from ragwitness.text.secrets import SecretIndex, read_secrets

    refuse_records("--background", [document.text for document in background], records)
    decoys = read_secrets(decoys_file) if decoys_file else []
    texts = [document.text for document in records]
    # The rate of decoys is a background and needs a rate above it.
    if decoys and not secrets:
        raise InputError("Decoys alone say nothing.", "Give the secrets too: --secrets FILE.")
    if in_corpus := {n for _, n in SecretIndex(decoys).pairs(texts)}:
        raise InputError(
            f"{len(in_corpus)} of {len(decoys)} decoys are in the corpus (the first is number"
            f" {min(in_corpus) + 1}): what is found of them is no chance.",
            "Leave them out of --decoys.",
        )
    return LeakPlan(records, background, secrets, decoys, seed)


def settings_of(attacks: Sequence[Attack], limits: Limits) -> dict[str, str]:
    """Return the settings of attacks, as label and value."""
    settings = {
        "prompts of each attack": f"at most {limits.prompts}",
        "tokens of an answer": f"at most {limits.max_tokens}",
        "seed": str(limits.seed),
    }
    for attack in attacks:
        # Every field of an attack's configuration is reported; of long texts their number.
        config = getattr(attack, "config", None)
        fields = dataclasses.fields(config) if dataclasses.is_dataclass(config) else ()
        values = {f.name: getattr(config, f.name) for f in fields if f.name != "limits"}
        for name in ("texts", "records"):
            if texts := values.pop(name, ()):
                values[name] = f"{len(texts)} given"
        settings[attack.name] = ", ".join(f"{key}: {value}" for key, value in values.items())
    return settings
