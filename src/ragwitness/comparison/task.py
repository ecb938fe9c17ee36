"""The task of a comparison: privacy and usefulness of other data in a corpus's place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from ragwitness.core.errors import InputError
from ragwitness.core.options import Only, Opt, PathRole
from ragwitness.leakage.task import attacks_of, listed_secrets, names_of, plan_of
from ragwitness.runner import task_options as opt
from ragwitness.runner.task_runtime import Note, as_documents, own_folder, per_method, to_end, warn
from ragwitness.synthesis.task import Contacts, Making, RolePlayers

if TYPE_CHECKING:
    from ragwitness.comparison.result import Comparison
    from ragwitness.comparison.variants import ComparisonPlan, Material, Variant
    from ragwitness.core.types import LeftOut, Target
    from ragwitness.runner.rate_limiter import RateLimiter
    from ragwitness.runner.worker import Progress
    from ragwitness.synthesis.agents import MakingConfig, Roles
    from ragwitness.synthesis.run import SynthesisResult
    from ragwitness.targets.transport import TransportOptions


@dataclass(frozen=True)
class CompareTask(opt.HowRead, opt.Sending, opt.OwnSystem, Making):
    """Compare substitutes of a corpus: privacy against use.

    Carried out, it gives the leaks of the records and the quality of answers, for the records
    themselves and for each substitute. Caps and prices are those of the chat models.

    Attributes:
        substitutes: Texts that replace the records, under the same ids. May be repeated.
        methods: A method that makes such texts on the spot: redact, with --model any method of
            ragwitness synthesize; or zero-shot, no texts at all. May be repeated.
        defenses: The records themselves behind a defense; ragwitness lab serve lists them. May be
            repeated.
        questions: JSONL rows {"question", "answer": text or list} about nothing private.
        held_out: The number of records that no index holds; they serve as background and as
            questions.
        utility: Measure usefulness too, and not privacy alone.
        judge: A chat model that judges answers, addressed like a target.
        attacks: The attacks: all, or names with commas between them, as for ragwitness leak.
        information: Public texts from which prompts are cut.
        options: A setting of one of the attacks. May be repeated.
        background: Texts that are like the corpus and that no index holds. They show what is found
            by chance.
        retrieve_by: How a text is found: own, by itself; original, by the private record, as in
            SAGE.
        k: The number of passages for each query, which is 1 in SAGE.
        embedder: The embedder of the judge: minilm, hf:NAME or URL#MODEL.
        seed: The seed of the random split, of the prompts and of the resampling.

    Raises:
        InputError: The corpus, a substitute or an option cannot be used.
        TargetError: A chat model cannot be reached, or does not speak the protocol.
    """

    corpus: opt.PrivateCorpus
    _: KW_ONLY
    substitutes: Annotated[
        Sequence[str] | None,
        PathRole.PAIRS,
        Opt("--with", metavar="NAME=FILE"),
    ] = None
    methods: Annotated[
        Sequence[str] | None,
        Opt("--method", shown="redact, if nothing else is compared"),
    ] = None
    defenses: Annotated[Sequence[str] | None, Opt("--defense")] = None
    questions: Annotated[
        Path | None,
        PathRole.READS,
        Opt(shown="the fields question and answer of the records held out"),
        Only("utility"),
    ] = None
    held_out: Annotated[
        int | None, Opt(shown="a tenth, at most 100; 0 with --questions and --background")
    ] = None
    utility: bool = True
    judge: Annotated[str | None, PathRole.ADDRESS, Only("utility")] = None
    attacks: str | Sequence[str] = "composite"
    prompts: opt.Prompts = 100
    answer_tokens: opt.AnswerTokens = 256
    information: Annotated[opt.Texts | None, PathRole.DOCUMENTS, Opt(shown="generated texts")] = (
        None
    )
    options: Annotated[
        Mapping[str, Mapping[str, object]] | Sequence[str] | None,
        Opt("--set", metavar="ATTACK.NAME=VALUE"),
    ] = None
    background: Annotated[
        opt.Texts | None, PathRole.DOCUMENTS, Opt(shown="the records held out")
    ] = None
    secrets: opt.Secrets = None
    decoys: opt.Decoys = None
    contacts: Contacts = False
    retrieve_by: str = "own"
    k: int = 1
    embedder: Annotated[str, PathRole.ADDRESS, Only("utility")] = "minilm"
    role: RolePlayers = None
    pii: opt.ContactFinder = "auto"
    seed: int = 0
    run: opt.RunPath = None

    def order(self, note: Note = warn) -> CompareWork:
        """Check the options, read the corpus and divide it; nothing is sent.

        Args:
            note: Receives remarks on reading the documents.

        Raises:
            InputError: An option or a file cannot be used, or would not be read.
        """
        from ragwitness.comparison.variants import ComparisonPlan
        from ragwitness.leakage.attacks.base import Limits
        from ragwitness.leakage.run import refuse_records
        from ragwitness.synthesis.agents import roles_of

        # 1. The options: variants, budget, limits.
        opt.refuse_types(self)
        opt.reject_inapplicable_options(self, {"utility"} if self.utility else set())
        roles = roles_of(self.model, dict(named_pairs(self.role, "--role judge=MODEL", "model")))
        named = self._wanted(roles)
        self.budget, self.transport()  # refuse what cannot be used
        limits = Limits(self.prompts, self.answer_tokens, self.seed)
        # 2. The material: the corpus is divided once, and every variant gets the same questions and
        # the same prompts about the same records.
        material = self._material(note)
        public = [document.text for document in as_documents(self.information, note=note)]
        refuse_records("--information", public, material.records)
        names, options = names_of(self.attacks), per_method(self.options)
        plan = ComparisonPlan(
            material=material,
            attacks=attacks_of(names, limits, options, texts=public),
            prompts=self.prompts,
            answer_tokens=self.answer_tokens,
            rag=self.rag,
            by_original=named.by_original,
            seed=self.seed,
        )
        return CompareWork(self, named, plan, roles, public)

    def _wanted(self, roles: Roles) -> Wanted:
        """Return the variants, each name once.

        Raises:
            InputError: A name or method is unknown or taken, or a model is needed and missing.
        """
        from ragwitness.comparison.variants import ZERO_SHOT, check_method, check_name
        from ragwitness.rag.defenses.defense_registry import load_defense

        if self.retrieve_by not in ("own", "original"):
            raise InputError(f"--retrieve-by is own or original, not {self.retrieve_by!r}.")
        files = named_pairs(self.substitutes, "--with NAME=FILE", "file")
        methods, defenses = self.methods or (), self.defenses or ()
        # The default needs neither a model nor a file.
        if not (files or methods or defenses):
            methods = ("redact",)
        for spec in methods:
            if spec != ZERO_SHOT and check_method(spec, roles) and self.model is None:
                raise InputError(
                    f"{spec} asks a chat model, and there is none.",
                    f"Name one with --model, or give its texts: --with {spec}=safe.jsonl",
                )
        # Loaded here only to check its name; each variant loads its own.
        for spec in defenses:
            load_defense(spec)
        named = tuple((check_name(name), Path(path)) for name, path in files)
        variants = Wanted(named, tuple(methods), tuple(defenses), self.retrieve_by == "original")
        # Names are folders of variants: two of one name would read each other's answers.
        if twice := [name for name in variants.names if variants.names.count(name) > 1]:
            raise InputError(
                f"Two variants are called {twice[0]}.", "Rename one: --with NAME=FILE."
            )
        return variants

    def _material(self, note: Note) -> Material:
        """Read the corpus and divide it.

        Raises:
            InputError: Something cannot be read, or there is no question where there must be some.
        """
        from ragwitness.comparison import variants

        # 1. The texts, the secrets and the questions.
        questions = () if self.questions is None else variants.read_questions(Path(self.questions))
        unread: list[LeftOut | str] = []
        records = as_documents(self.corpus, self, unread, note)
        background = as_documents(self.background, self, unread, note)
        secrets = listed_secrets(records, self.secrets, "auto" if self.contacts else "")
        leaks = plan_of(records, background, secrets, self.decoys, self.seed)
        source = self.corpus if isinstance(self.corpus, str | Path) else "the corpus"
        questions_of_records = None
        if self.utility and self.questions is None:
            questions_of_records = variants.own_questions(str(source))
        if questions_of_records is not None and not questions_of_records:
            raise InputError(
                f"There are no questions: {source} has no JSON lines with fields question and"
                " answer.",
                "Give --questions FILE, or --no-utility to measure privacy alone.",
            )
        # 2. Held-out records serve as questions and as background; with both files none is needed.
        held_out = self.held_out
        if held_out is None:
            spare = self.questions is not None and self.background is not None
            held_out = (
                0 if spare else variants.default_held_out(len(questions_of_records or records))
            )
        if questions_of_records is not None and not held_out:
            raise InputError(
                "Without records held out there are no questions.",
                "Give --held-out, --questions FILE or --no-utility.",
            )
        # 3. One division for all variants: held-out records are in no index.
        divided = variants.divide(
            records,
            held_out,
            self.seed,
            own=questions_of_records,
            questions=questions,
            background=background,
            secrets=leaks.secrets,
            decoys=leaks.decoys,
        )
        return replace(divided, left_out=tuple(unread))

    def carry_out(self) -> Comparison:
        """Make, ask and compare."""
        from tempfile import TemporaryDirectory

        folder = own_folder(self.run, self.corpus, self.background, self.information)
        work = self.order()
        with ExitStack() as stack:
            folder = folder or Path(stack.enter_context(TemporaryDirectory()))
            limiter, transport = stack.enter_context(self.limited(folder))
            return to_end(work.asked(limiter, transport, folder))


@dataclass(frozen=True, slots=True)
class Wanted:
    """The variants beside ``origin``, as they were named.

    Attributes:
        files: Names and paths of given texts.
        methods: Methods that make texts on the spot; ``zero-shot`` too.
        defenses: Defenses before the records as they are.
        by_original: Whether texts are found by their originals.
    """

    stored_name: ClassVar[str] = "Wanted"

    files: tuple[tuple[str, Path], ...]
    methods: tuple[str, ...]
    defenses: tuple[str, ...]
    by_original: bool

    @property
    def names(self) -> list[str]:
        """Names of all variants, ``origin`` first."""
        return ["origin", *(name for name, _ in self.files), *self.methods, *self.defenses]


@dataclass(frozen=True)
class CompareWork:
    """A comparison whose options were checked and whose files were read.

    Attributes:
        task: The task.
        wanted: The variants.
        plan: How they are compared.
        roles: Models of the roles that the task's model does not play.
        public: Texts from which prompts are cut.
    """

    task: CompareTask
    wanted: Wanted
    plan: ComparisonPlan
    roles: Roles
    public: Sequence[str] = ()

    @property
    def identity(self) -> tuple[object, ...]:
        """The values that name a run folder: all inputs of an answer, the models too."""
        from ragwitness.leakage.attacks.base import Limits

        task, plan = self.task, self.plan
        limits = Limits(plan.prompts, plan.answer_tokens, plan.seed)
        options = sorted(task.options or ())
        making = (task.model, task.domain, task.rounds, task.pii, task.judge)
        sources = (task.corpus, plan.material, self.wanted, limits, plan.rag)
        return (*sources, (task.attacks, options, self.public, *making), *self.roles)

    @property
    def making(self) -> MakingConfig:
        """The configuration of methods that ask a model.

        Raises:
            InputError: There is no such domain.
        """
        from ragwitness.synthesis.agents import Asking

        return self.task.making(Asking(seed=self.task.seed, roles=self.roles))

    def preview(self) -> list[str]:
        """Return the most queries, variant by variant."""
        from ragwitness.comparison.variants import ZERO_SHOT
        from ragwitness.synthesis.generator_registry import build_method, parse_spec

        records, questions = len(self.plan.material.records), len(self.plan.material.questions)
        names, plan = self.wanted.names, self.plan
        lines = [
            f"{len(names)} variants of {records:,} records: {', '.join(names)}",
            f"each: at most {plan.prompts:,} prompts of {len(plan.attacks)} attacks and"
            f" {questions:,} questions, answers of at most {plan.answer_tokens:,} tokens, in this"
            " process",
        ]
        if judge := self.task.judge:
            queries = 4 * len(names) * questions
            lines.append(f"{judge}: at most {queries:,} queries to judge answers")
        for spec in self.wanted.methods:
            if spec == ZERO_SHOT:
                continue
            parsed = parse_spec(spec)
            method = build_method(parsed.name, parsed.config(self.making), evaluation=True)
            if method.asks:
                model = self.task.model or "models by role"
                lines.append(f"{model}: at most {method.most(records):,} queries to make {spec}")
        return lines

    async def asked(
        self,
        limiter: RateLimiter,
        transport: TransportOptions,
        folder: Path,
        progress: Progress | None = None,
        syntheses: dict[str, SynthesisResult] | None = None,
    ) -> Comparison:
        """Make the texts, ask every variant, and compare.

        Args:
            limiter: Lets queries to chat models pass.
            transport: How they are reached.
            folder: Run folder.
            progress: Called after each answer.
            syntheses: Receives the texts that were made, by method.

        Raises:
            TargetError: A chat model cannot be reached, or does not speak the protocol.
            InputError: A text cannot be used.
        """
        from ragwitness.comparison.run import run_comparison
        from ragwitness.comparison.variants import ZERO_SHOT, Judge
        from ragwitness.models.model_registry import load_embedder
        from ragwitness.rag.lab import open_model
        from ragwitness.synthesis.agents import open_chat
        from ragwitness.synthesis.generator_registry import parse_spec

        task, syntheses = self.task, {} if syntheses is None else syntheses
        async with AsyncExitStack() as opened:
            model = judge = None
            specs = (parse_spec(spec) for spec in self.wanted.methods if spec != ZERO_SHOT)
            roles = (*self.roles, *dict.fromkeys(role for spec in specs for role in spec.roles))
            # A model that cannot be loaded must be known before anything is spent.
            if task.model is not None or roles:
                model = await open_chat(task.model, roles, transport)
                opened.push_async_callback(model.close)
            if task.judge is not None:
                embedder = load_embedder(task.embedder)
                judge = Judge(await open_model(task.judge, transport), embedder)
                opened.push_async_callback(judge.model.close)
            # First all texts, then all questions: a method that fails must not leave half a
            # comparison paid for.
            variants = await self._variants(model, limiter, folder, progress, syntheses)
            return await run_comparison(
                self.plan,
                variants,
                folder,
                limiter=limiter,
                judge=judge,
                settings=self._settings(),
                progress=progress,
            )

    async def _variants(
        self,
        model: Target | None,
        limiter: RateLimiter,
        folder: Path,
        progress: Progress | None,
        made: dict[str, SynthesisResult],
    ) -> list[Variant]:
        """Read, make and defend, in the order in which they were named."""
        from ragwitness.comparison import variants as kinds
        from ragwitness.synthesis.guard import GuardConfig

        material, by_original = self.plan.material, self.wanted.by_original
        # `origin`, the records as they are, comes first: every gain and loss is a difference from
        # it.
        variants = [kinds.origin(material)]
        for name, path in self.wanted.files:
            variants.append(kinds.read_variant(name, path, material, by_original=by_original))
        for spec in self.wanted.methods:
            # No retrieval at all: the lower bound of usefulness and of leaks.
            if spec == kinds.ZERO_SHOT:
                variants.append(kinds.zero_shot(material))
                continue
            variant, made[spec] = await kinds.made_variant(
                spec,
                material,
                self.making,
                GuardConfig(pii=self.task.pii),
                model=model,
                run=folder / spec / "making",
                in_flight=self.task.at_once,
                progress=progress and partial(_making, progress, spec),
                limiter=limiter,
            )
            variants.append(variant)
        return [*variants, *(kinds.defended(material, spec) for spec in self.wanted.defenses)]

    def _settings(self) -> dict[str, str]:
        """Return the settings that are the same for all variants."""
        plan, rag = self.plan, self.plan.rag
        judge = "a chat model; of several references the first"
        original = "the original record: the index holds private text"
        return {
            "attacks": ", ".join(attack.name for attack in plan.attacks),
            "prompts of each attack": f"at most {plan.prompts}",
            "tokens of an answer": f"at most {plan.answer_tokens}",
            "retrieval": f"{rag.retrieval}, k = {rag.k}",
            "a text is found by": original if plan.by_original else "itself",
            "generator": rag.generator,
            "template": rag.template.name,
            "model of the methods": self.task.model or "none",
            **dict(self.roles),
            "judge": "none" if self.task.judge is None else judge,
            "seed": str(plan.seed),
        }


def _making(show: Progress, spec: str, _stage: str, done: int, total: int) -> None:
    show(f"{spec}: making", done, total)


def named_pairs(texts: Sequence[str] | None, form: str, what: str) -> list[tuple[str, str]]:
    """Return the pairs of texts of the form NAME=VALUE.

    Args:
        texts: The texts.
        form: The option with its form, for people.
        what: Kind of the value, for people.

    Raises:
        InputError: A text has another form.
    """
    pairs = []
    for text in texts or ():
        name, _, value = text.partition("=")
        if not value:
            raise InputError(f"{form.split()[0]} {text!r} names no {what}.", f"Write {form}.")
        pairs.append((name, value))
    return pairs
