"""The task of a synthesis: data that may replace a private corpus."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ragwitness.core.errors import InputError
from ragwitness.core.options import Only, Opt, PathRole
from ragwitness.core.types import LeftOut, left_out_of
from ragwitness.runner import task_options as opt
from ragwitness.runner.task_runtime import Note, as_documents, own_folder, to_end, warn

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from ragwitness.core.types import Document, Target
    from ragwitness.runner.rate_limiter import RateLimiter
    from ragwitness.runner.worker import Progress
    from ragwitness.synthesis.agents import Asking, MakingConfig
    from ragwitness.synthesis.generator_registry import AnyMethod
    from ragwitness.synthesis.guard import GuardConfig, SyntheticGuard
    from ragwitness.synthesis.private.ledger import PrivacyLedger
    from ragwitness.synthesis.result import SynthesisReport
    from ragwitness.synthesis.run import SynthesisResult
    from ragwitness.targets.transport import TransportOptions
    from ragwitness.text.secrets import Secret

# Options that synthesis and comparison share.


RolePlayers = Annotated[
    Sequence[str] | None,
    Opt(
        "--role",
        metavar="ROLE=MODEL",
        help="Another model for one role of SAGE: extractor, generator, judge or rewriter. May be"
        " repeated.",
    ),
]


Contacts = Annotated[
    bool, Opt("--contacts", help="Count the contact details in the corpus as secrets too.")
]


@dataclass(frozen=True, kw_only=True)
class Making:
    """The chat model that makes substitutes of private records, if the method asks one.

    Attributes:
        model: The chat model of methods that ask one: URL#MODEL, openai/MODEL, gguf:FILE, hf:NAME,
            or any target; reader is the embedded reader. It is shown the records (the private
            methods do not show them).
        domain: The kind of the records: auto, medical, wiki or a .toml file.
        rounds: The most versions of a record that are judged.
    """

    model: Annotated[str | None, PathRole.ADDRESS] = None
    domain: Annotated[str, PathRole.ADDRESS] = "auto"
    rounds: int = 3

    def making(self, asking: Asking) -> MakingConfig:
        """Return the configuration of methods that ask a model.

        Raises:
            InputError: There is no such domain.
        """
        from ragwitness.synthesis.agents import MakingConfig, load_domain

        return MakingConfig(domain=load_domain(self.domain), asking=asking, rounds=self.rounds)


_LONGEST = 20_000  # characters of a public text, as of a record

_Role = Annotated[str | None, PathRole.ADDRESS, Opt(shown="--model")]


@dataclass(frozen=True)
class SynthesizeTask(opt.HowRead, opt.Sending, Making):
    """Make synthetic records from private ones.

    Carried out, it writes the texts that passed, as JSON lines, and reports the outcome of every
    record.

    Attributes:
        out: The JSONL file for the synthetic records.
        method: The method. With a chat model: sage, stage-1, paraphrase, paraphrase-privacy,
            paraphrase-checklist. Without one: redact. With or without: private-evolution, which is
            differentially private.
        extractor: The model that names attributes and extracts their content.
        generator: The model that writes.
        judge: The model that judges the privacy of a text.
        rewriter: The model that rewrites what was not judged safe.
        rounds: The most versions of a record that are judged; for private-evolution, the number of
            rounds of votes.
        epsilon: The private methods: the epsilon of all texts, for one record more or less.
        delta: The private methods: the delta, which must be far below 1 / number of records.
        public: Texts that are not secret. The private methods choose among them, vary them or take
            words from them; the other methods may repeat their phrases.
        public_overlap: Allow public texts that overlap with private records. Their content may
            then be written. The private methods only warn of them.
        ledger: The private methods: the file that adds up what was spent on the records.
        max_epsilon: The private methods: refuse a run that takes the epsilon of any record, over
            all runs in the ledger, above this.
        group_field: The private methods: the field or column that names a record's person, so that
            the ledger knows the person again.
        texts: The private methods: the most texts to make.
        longest_run: Withhold a text that shares this number of tokens in a row with any record.
        common: A phrase in this number of records may be repeated; 0 allows none.
        rouge: The highest ROUGE-L F1 with any private record.
        recall: The largest share of the words of any private record that a text may hold, in any
            order; function words do not count.
        cosine: The highest cosine with any private record, by --embedder.
        embedder: The embedder: minilm, hf:NAME or URL#MODEL; for the private methods also words,
            which needs no model.
        temperature: The temperature at which the chat model is sampled.
        attempts: How often a question is asked while no answer can be used.
        seed: The seed of the chat model and of everything that is drawn.
        yes: Go on without being asked where a model named the attributes of the corpus.

    Raises:
        InputError: The corpus, the method or an option cannot be used.
        TargetError: A chat model cannot be reached, or does not speak the protocol.
        CapReachedError: A cap was reached before the first record.
    """

    corpus: opt.PrivateCorpus
    _: KW_ONLY
    out: Annotated[
        Path | str | None, PathRole.WRITES, Opt(short="-o", shown="safe.jsonl in the run folder")
    ] = None
    method: str = "sage"
    extractor: _Role = None
    generator: _Role = None
    judge: _Role = None
    rewriter: _Role = None
    epsilon: Annotated[float | None, Only("private")] = None
    delta: Annotated[float, Only("private")] = 1e-6
    public: Annotated[Path | str | None, PathRole.READS, Only("writes")] = None
    public_overlap: bool = False
    ledger: Annotated[
        Path | str | None,
        PathRole.KEEPS,
        Opt(shown="ragwitness-privacy.jsonl beside the corpus"),
        Only("private"),
    ] = None
    max_epsilon: Annotated[float | None, Opt(shown="no limit"), Only("private")] = None
    group_field: Annotated[str | None, Only("private")] = None
    texts: Annotated[int, Only("private")] = 50
    secrets: Annotated[opt.Secrets, Only("looks")] = None
    contacts: Annotated[Contacts, Only("looks")] = False
    longest_run: Annotated[int, Only("looks")] = 8
    common: Annotated[int, Only("looks")] = 0
    rouge: Annotated[float, Only("looks")] = 0.5
    recall: Annotated[float, Only("looks")] = 0.65
    cosine: Annotated[float | None, Opt(shown="not measured"), Only("looks")] = None
    embedder: Annotated[str, PathRole.ADDRESS] = "minilm"
    pii: opt.ContactFinder = "auto"
    answer_tokens: opt.AnswerTokens = 1024
    temperature: float = 0.6
    attempts: int = 2
    seed: int = 0
    yes: bool = False
    run: opt.RunPath = None

    def order(self, note: Note = warn) -> SynthesisWork:
        """Check the options and read everything; nothing is sent.

        Args:
            note: Receives remarks on reading the documents.

        Raises:
            InputError: An option or a file cannot be used, or would not be read.
        """
        from ragwitness.synthesis.agents import ROLES, Asking, roles_of
        from ragwitness.synthesis.generator_registry import METHODS, build_method, needs_model
        from ragwitness.synthesis.guard import GuardConfig
        from ragwitness.synthesis.private import evolution
        from ragwitness.text.pii import personal_of, pii_finder
        from ragwitness.text.secrets import read_secrets

        # 1. The options: questions, caps, and the conditions on a text.
        opt.refuse_types(self)
        self.budget, self.transport()  # refuse what cannot be used
        roles = roles_of(self.model, {role: getattr(self, role) for role in ROLES})
        asking = Asking(self.answer_tokens, self.temperature, self.attempts, self.seed, roles=roles)
        conditions = GuardConfig(
            self.longest_run, self.common, self.rouge, self.recall, self.cosine, self.pii
        )
        if self.method not in METHODS:
            raise METHODS.unknown(self.method)
        # Options that a method does not read, or that promise what it cannot keep, are refused.
        listing = METHODS[self.method]
        traits = {"private" if listing.private else "looks"}
        opt.reject_inapplicable_options(
            self, traits if listing.copies else {*traits, "writes"}, self.method
        )
        for name in ("model", "domain", "rounds") if listing.copies else ():
            if getattr(self, name) != getattr(Making, name):
                reason, hint = opt.TRAITS["writes"]
                raise InputError(f"--{name} {reason.format(method=self.method)}.", hint)
        # The texts replace a file as a whole; a device cannot be replaced.
        if self.out is not None and Path(self.out).exists() and not Path(self.out).is_file():
            raise InputError(f"--out {self.out} is a device, not a file.", "Choose another.")
        # 2. The private records, the known secrets and, for a private method, the privacy budget.
        unread: list[LeftOut | str] = []
        documents = as_documents(self.corpus, self, unread, note, group_field=self.group_field)
        records = ((document.id, document.text) for document in documents)
        listed = read_secrets(self.secrets) if self.secrets is not None else []
        contacts = personal_of(records, pii_finder(self.pii if self.contacts else "none"))
        secrets = (*listed, *contacts)
        public = self._public(documents, note)
        private = None
        if self.epsilon is not None:
            # The embedder is loaded before the first vote: a preview must not load a model.
            load = partial(evolution.load_embedding, self.embedder, public)
            private = (
                evolution.PrivateConfig(self.epsilon, self.delta, self.texts, self.rounds),
                evolution.Candidates(public, self.embedder, load, self.model),
            )
        config = self.making(asking)
        method = build_method(self.method, config, secrets, pii=self.pii, private=private)
        if needs_model(method) and self.model is None:
            raise InputError(
                f"{self.method} asks a chat model, and there is none.",
                "Name one, e.g. --model openai/MODEL; redact needs none.",
            )
        left_out = left_out_of(tuple(unread))
        return SynthesisWork(self, documents, left_out, method, conditions, secrets, public)

    def _public(self, records: tuple[Document, ...], note: Note) -> tuple[str, ...]:
        """Read the public texts, each once.

        Raises:
            InputError: There is no such file, they are too few, or they overlap with the records.
        """
        from ragwitness.synthesis.generator import flaw
        from ragwitness.text.overlap import overlapping

        public = self.public
        if public is None:
            return ()
        if not os.path.exists(public):
            raise InputError(f"--public {public} does not exist.", "Check the path.")
        # Files are compared, not names: a link to the corpus is the corpus.
        corpus = str(self.corpus)
        if os.path.exists(corpus) and os.path.samefile(corpus, public):
            raise InputError(
                f"--public {public} is the private corpus itself: its records would be written"
                " as they are.",
                "Give texts that are no secret, e.g. a published collection of the same kind.",
            )
        read = (document.text for document in as_documents(public, self, note=note))
        texts = tuple(dict.fromkeys(text for text in read if flaw(text, _LONGEST) is None))
        # A private method chooses among them: of one there is no choice.
        if len(texts) < (1 if self.epsilon is None else 2):
            raise InputError(
                f"--public {public} has {len(texts)} usable texts, which is too few.",
                "For a private method, give many more than --texts; else leave it out.",
            )
        near = (
            [] if self.public_overlap else overlapping(texts, [record.text for record in records])
        )
        if not near:
            return texts
        overlap = (
            f"--public {public}: {len(near)} of {len(texts)} texts nearly are private records, hold"
            f" some or are long parts of some (the first is its usable text {near[0] + 1})"
        )
        if self.epsilon is None:
            raise InputError(
                f"{overlap}: that could be written as it is, which no condition covers.",
                "Take them out, or allow them with --public-overlap if they are no secret.",
            )
        # The run must not depend on this comparison with the records: no epsilon covers it.
        note(
            f"{overlap}. The run goes on: epsilon covers what the records change, and these texts"
            " are public. Leave the file as it is: were it changed because of this, epsilon would"
            " no longer hold for those records."
        )
        return texts

    def carry_out(self) -> SynthesisReport:
        """Make the texts, write them, and return the outcome of the records."""
        folder = own_folder(self.run, self.corpus, self.public)
        if folder is None and self.out is None:
            raise InputError("The texts have no place.", "Give out=FILE or run=FOLDER.")
        work = self.order()
        guard = work.guard()

        async def life() -> SynthesisResult:
            opening = work.opening(transport)
            model = await opening if opening else None
            try:
                return await work.asked(model, guard, limiter, folder)
            finally:
                if model:
                    await model.close()

        with self.limited(folder) as (limiter, transport):
            return work.written(to_end(life()), folder)


@dataclass(frozen=True)
class SynthesisWork:
    """A synthesis whose options were checked and whose files were read.

    Attributes:
        task: The task.
        documents: The private records.
        left_out: Files and rows of the corpus that could not be read.
        method: How texts are made.
        conditions: The conditions on every text.
        secrets: The known secrets.
        public: Texts that are no secret.
    """

    task: SynthesizeTask
    documents: tuple[Document, ...]
    left_out: tuple[LeftOut, ...]
    method: AnyMethod
    conditions: GuardConfig
    secrets: tuple[Secret, ...]
    public: tuple[str, ...]

    @property
    def private(self) -> bool:
        """Whether a privacy budget is spent."""
        return self.task.epsilon is not None

    @property
    def identity(self) -> tuple[object, ...]:
        """The values that name a run folder."""
        public = (self.public,) if self.public and not self.private else ()
        return (
            self.documents,
            self.method.describe(),
            self.task.model,
            self.conditions,
            self.secrets,
            *public,
        )

    @property
    def book(self) -> PrivacyLedger:
        """The file that adds up the spends of private methods on the records."""
        from ragwitness.synthesis.private.ledger import PrivacyLedger, ledger_path

        task = self.task
        return PrivacyLedger(Path(task.ledger or ledger_path(str(task.corpus))), task.max_epsilon)

    def preview(self) -> list[str]:
        """Return the most queries, and the spend of a privacy budget."""
        from ragwitness.synthesis.private.evolution import PrivateEvolution

        count = len(self.documents)
        queries = f"at most {self.method.most(count):,} queries"
        lines = [f"{self.method.name}: {count:,} records, {queries}"]
        if isinstance(self.method, PrivateEvolution):
            before = self.book.total(self.documents).in_words()
            after = self.book.total(self.documents, self.method.spend()).in_words()
            lines += [f"spent on these records before: {before}", f"and with a new run: {after}"]
        return lines

    def guard(self) -> SyntheticGuard:
        """Return the guard of every text. It loads the embedder.

        Raises:
            ModelError: The embedder cannot be loaded.
        """
        from ragwitness.models.model_registry import load_embedder
        from ragwitness.synthesis.generator_registry import guard_config
        from ragwitness.synthesis.guard import SyntheticGuard

        config = guard_config(self.task.method, self.conditions)
        if self.private:
            # Without the records: withholding a text because a record holds it would reveal that,
            # outside epsilon (docs/design/dp-synthesis.md).
            return SyntheticGuard((), (), config)
        embed = None if config.cosine is None else load_embedder(self.task.embedder).embed
        originals = [document.text for document in self.documents]
        return SyntheticGuard(originals, self.secrets, config, embed, self.public)

    def opening(self, transport: TransportOptions) -> Awaitable[Target] | None:
        """Open the models; None where the method asks none, whatever ``model`` says."""
        from ragwitness.synthesis.agents import MakingConfig, open_chat

        config = getattr(self.method, "config", MakingConfig())
        roles_asked = getattr(self.method, "roles", ())
        roles = tuple(pair for pair in config.asking.roles if pair[0] in roles_asked)
        return open_chat(self.task.model, roles, transport) if self.method.asks else None

    async def asked(
        self,
        model: Target | None,
        guard: SyntheticGuard,
        limiter: RateLimiter,
        folder: Path | None,
        progress: Progress | None = None,
        *,
        agreed: bool | None = None,
    ) -> SynthesisResult:
        """Make the texts; ``agreed`` replaces the task's ``yes``.

        Raises:
            UnseenAttributesError: A model named the attributes, and nobody agreed.
        """
        from ragwitness.synthesis.run import run_synthesis

        return await run_synthesis(
            self.documents,
            self.method,
            guard,
            model,
            run=folder,
            in_flight=self.task.at_once,
            progress=progress,
            limiter=limiter,
            ledger=self.book if self.private else None,
            agreed=self.task.yes if agreed is None else agreed,
        )

    def written(self, result: SynthesisResult, folder: Path | None) -> SynthesisReport:
        """Write the texts that passed; return the outcome of each record, without any text.

        If no text passed, no file is written: an empty one would look like a corpus without
        records (docs/design/synthetic-data.md).

        Raises:
            RagwitnessError: The file cannot be written.
        """
        from ragwitness.core.run_files import SAFE
        from ragwitness.synthesis.run import write_made

        report = replace(result.report, left_out=self.left_out)
        if not report.counts.get("passed"):
            return report
        path = Path(self.task.out or (folder or Path()) / SAFE)
        write_made(path, result)
        return replace(report, out=str(path))
