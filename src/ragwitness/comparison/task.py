"""The task of a comparison: what other data in a corpus's place buys and costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from ragwitness.core.errors import InputError
from ragwitness.core.options import Only, Opt, PathRole
from ragwitness.leakage.task import attacks_of, names_of, plan_of
from ragwitness.runner.task_options import (
    AnswerTokens,
    ContactFinder,
    Decoys,
    HowRead,
    OwnSystem,
    PrivateCorpus,
    Prompts,
    RunPath,
    Secrets,
    Sending,
    Texts,
    refuse_types,
    reject_inapplicable_options,
)
from ragwitness.runner.task_runtime import Note, as_documents, own_folder, per_method, to_end, warn
from ragwitness.synthesis.task import Contacts, Making, RolePlayers

if TYPE_CHECKING:
    from ragwitness.comparison.result import Comparison
    from ragwitness.comparison.variants import ComparisonPlan, Judge, Material, Variant
    from ragwitness.core.types import LeftOut, Target
    from ragwitness.runner.rate_limiter import RateLimiter
    from ragwitness.runner.worker import Progress
    from ragwitness.synthesis.agents import MakingConfig, Roles
    from ragwitness.synthesis.run import SynthesisResult
    from ragwitness.targets.transport import TransportOptions

_MODELLESS = ("redact", "keywords")  # made where nothing else is named


@dataclass(frozen=True)
class CompareTask(HowRead, Sending, OwnSystem, Making):
    """Compare substitutes of a corpus: privacy against use.

    Carried out, it gives what leaks of the records and how well questions are answered, for the
    records themselves and for each substitute. Caps and prices are those of the chat models.

    Attributes:
        substitutes: Texts that stand for the records, under the same ids. May be repeated.
        methods: A method that makes such texts on the spot: redact, keywords[:K], with --model any
            method of ragwitness synthesize; or zero-shot, no texts at all. May be repeated.
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
        embedder: Measure likeness in meaning too, by this embedder: minilm, hf:NAME or URL#MODEL.
            The judge uses it as well, or minilm.
        seed: The seed of the random split, of the prompts and of the resampling.

    Raises:
        InputError: The corpus, a substitute or an option cannot be used.
        TargetError: A chat model cannot be reached, or does not speak the protocol.
    """

    corpus: PrivateCorpus
    _: KW_ONLY
    substitutes: Annotated[
        Sequence[str] | None,
        PathRole.PAIRS,
        Opt("--with", metavar="NAME=FILE"),
    ] = None
    methods: Annotated[
        Sequence[str] | None,
        Opt("--method", shown="redact and keywords, if nothing else is compared"),
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
    prompts: Prompts = 100
    answer_tokens: AnswerTokens = 256
    information: Annotated[Texts | None, PathRole.DOCUMENTS, Opt(shown="generated texts")] = None
    options: Annotated[
        Mapping[str, Mapping[str, object]] | Sequence[str] | None,
        Opt("--set", metavar="ATTACK.NAME=VALUE"),
    ] = None
    background: Annotated[Texts | None, PathRole.DOCUMENTS, Opt(shown="the records held out")] = (
        None
    )
    secrets: Secrets = None
    decoys: Decoys = None
    contacts: Contacts = False
    retrieve_by: str = "own"
    k: int = 1
    embedder: Annotated[str | None, PathRole.ADDRESS] = None
    role: RolePlayers = None
    pii: ContactFinder = "auto"
    seed: int = 0
    run: RunPath = None

    def order(self, note: Note = warn) -> CompareWork:
        """Check the options, read the corpus and divide it; nothing is sent.

        Args:
            note: Told of what reading documents came to.

        Raises:
            InputError: An option or a file cannot be used, or would not be read.
        """
        from ragwitness.comparison.variants import ComparisonPlan
        from ragwitness.leakage.attacks.base import Limits
        from ragwitness.leakage.run import refuse_records
        from ragwitness.synthesis.agents import roles_of

        # 1. The options: variants, budget, limits.
        refuse_types(self)
        reject_inapplicable_options(self, {"utility"} if self.utility else set())
        players = named_pairs(self.role, "--role judge=MODEL", "model")
        model, roles = roles_of(self.model, dict(players))
        wanted = self._wanted(model, roles)
        self.budget, self.reach  # noqa: B018  # refuse what cannot be used
        limits = Limits(self.prompts, self.answer_tokens, self.seed)
        # 2. The material: the corpus is divided once, and every variant is asked the same questions
        # and the same prompts about the same records.
        material = self._material(note)
        public = [one.text for one in as_documents(self.information, note=note)]
        refuse_records("--information", public, material.records)
        names, given = names_of(self.attacks), per_method(self.options)
        plan = ComparisonPlan(
            material=material,
            attacks=attacks_of(names, limits, given, texts=public),
            prompts=self.prompts,
            answer_tokens=self.answer_tokens,
            rag=self.rag,
            by_original=wanted.by_original,
            seed=self.seed,
        )
        return CompareWork(self, wanted, plan, model, roles, public)

    def _wanted(self, model: str | None, roles: Roles) -> Wanted:
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
        # Without any name: what can be made with no model and no file.
        if not (files or methods or defenses):
            methods = _MODELLESS
        for spec in methods:
            if spec != ZERO_SHOT and check_method(spec, roles) and model is None:
                raise InputError(
                    f"{spec} asks a chat model, and there is none.",
                    f"Name one with --model, or give its texts: --with {spec}=safe.jsonl",
                )
        # Loaded once to find out whether it can be; each variant loads its own.
        for spec in defenses:
            load_defense(spec)
        named = tuple((check_name(name), Path(path)) for name, path in files)
        wanted = Wanted(named, tuple(methods), tuple(defenses), self.retrieve_by == "original")
        # Names key the journals of variants: two of one name would read each other's answers.
        if twice := [name for name in wanted.names if wanted.names.count(name) > 1]:
            raise InputError(
                f"Two variants are called {twice[0]}.", "Rename one: --with NAME=FILE."
            )
        return wanted

    def _material(self, note: Note) -> Material:
        """Read the corpus and divide it.

        Raises:
            InputError: Something cannot be read, or there is no question where there must be some.
        """
        from ragwitness.comparison.variants import (
            default_held_out,
            divide,
            own_questions,
            read_questions,
        )

        told = () if self.questions is None else read_questions(Path(self.questions))
        lost: list[LeftOut | str] = []
        records = as_documents(self.corpus, self, lost, note)
        others = as_documents(self.background, self, lost, note)
        known = plan_of(
            records, others, (self.secrets, self.decoys), contacts=self.contacts, seed=self.seed
        )
        source = self.corpus if isinstance(self.corpus, str | Path) else "the corpus"
        own = own_questions(str(source)) if self.utility and self.questions is None else None
        if own is not None and not own:
            raise InputError(
                f"There are no questions: {source} has no JSON lines with fields question and"
                " answer.",
                "Give --questions FILE, or --no-utility to measure privacy alone.",
            )
        # Held-out records serve as questions and as background; whoever gives both files needs
        # none.
        held_out = self.held_out
        if held_out is None:
            spare = self.questions is not None and self.background is not None
            held_out = 0 if spare else default_held_out(len(own or records))
        if own is not None and not held_out:
            raise InputError(
                "Without records held out there are no questions.",
                "Give --held-out, --questions FILE or --no-utility.",
            )
        # One division for all variants: what is held out is in no index of any of them.
        divided = divide(
            records,
            held_out,
            self.seed,
            own=own,
            questions=told,
            background=others,
            secrets=known.secrets,
            decoys=known.decoys,
        )
        return replace(divided, left_out=tuple(lost))

    def carry_out(self) -> Comparison:
        """Do it, and return the comparison."""
        from tempfile import TemporaryDirectory

        folder = own_folder(self.run, self.corpus, self.background, self.information)
        work = self.order()
        with ExitStack() as held:
            folder = folder or Path(held.enter_context(TemporaryDirectory()))
            limiter, transport = held.enter_context(self.governed(folder))
            return to_end(work.asked(limiter, transport, folder))


@dataclass(frozen=True, slots=True)
class Wanted:
    """The variants beside ``origin``, as they were named.

    Attributes:
        files: Name and path of each.
        methods: Made on the spot; ``zero-shot`` too.
        defenses: Before the records as they are.
        by_original: Whether texts are found by their originals.
    """

    stored_name: ClassVar[str] = "Wanted"

    files: tuple[tuple[str, Path], ...]
    methods: tuple[str, ...]
    defenses: tuple[str, ...]
    by_original: bool

    @property
    def names(self) -> list[str]:
        """Of all variants, ``origin`` first."""
        return ["origin", *(name for name, _ in self.files), *self.methods, *self.defenses]


@dataclass(frozen=True)
class CompareWork:
    """A comparison whose options were checked and whose files were read.

    Attributes:
        task: What was asked for.
        wanted: The variants.
        plan: How they are compared.
        model: The chat model of the methods; None for none, and where the rules are that.
        roles: Who plays the roles that it does not play.
        public: Texts from which prompts are cut.
    """

    task: CompareTask
    wanted: Wanted
    plan: ComparisonPlan
    model: str | None
    roles: Roles
    public: Sequence[str] = ()

    @property
    def identity(self) -> tuple[object, ...]:
        """What a run folder is named by: all that an answer depends on, the models too."""
        from ragwitness.leakage.attacks.base import Limits

        it, plan = self.task, self.plan
        limits = Limits(plan.prompts, plan.answer_tokens, plan.seed)
        options = sorted(it.options or ())
        given = (it.attacks, options, self.public, self.model, it.domain, it.rounds, it.pii)
        sources = (it.corpus, plan.material, self.wanted, limits, plan.rag)
        return (*sources, (*given, it.judge), *self.roles)

    @property
    def making(self) -> MakingConfig:
        """The configuration of methods that ask a model.

        Raises:
            InputError: There is no such domain.
        """
        from ragwitness.synthesis.agents import Asking

        return self.task.making(Asking(seed=self.task.seed, roles=self.roles))

    def foretold(self) -> list[str]:
        """Say what would be asked at most."""
        from ragwitness.comparison.variants import ZERO_SHOT
        from ragwitness.synthesis.generator_registry import build_method, parse_spec

        records, told = len(self.plan.material.records), len(self.plan.material.questions)
        names = self.wanted.names
        lines = [
            f"{len(names)} variants of {records:,} records: {', '.join(names)}",
            f"each: at most {self.plan.prompts:,} prompts of {len(self.plan.attacks)} attacks and"
            f" {told:,} questions, answers of at most {self.plan.answer_tokens:,} tokens, in this"
            " process",
        ]
        if judge := self.task.judge:
            lines.append(f"{judge}: at most {4 * len(names) * told:,} queries to judge answers")
        for spec in self.wanted.methods:
            if spec == ZERO_SHOT:
                continue
            parsed = parse_spec(spec)
            method = build_method(parsed.name, parsed.config(self.making), evaluation=True)
            if method.asks:
                most = method.most(records)
                lines.append(
                    f"{self.model or 'models by role'}: at most {most:,} queries to make {spec}"
                )
        return lines

    async def asked(
        self,
        limiter: RateLimiter,
        transport: TransportOptions,
        folder: Path,
        progress: Progress | None = None,
        made: dict[str, SynthesisResult] | None = None,
    ) -> Comparison:
        """Make what is to be made, ask every variant, and compare.

        Args:
            limiter: Lets queries to chat models pass.
            transport: How they are reached.
            folder: Of the run.
            progress: Called after each answer.
            made: Filled with what was made, by method; None where nobody asks.

        Raises:
            TargetError: A chat model cannot be reached, or does not speak the protocol.
            InputError: A text cannot be used.
        """
        from ragwitness.comparison.run import run_comparison
        from ragwitness.comparison.variants import ZERO_SHOT, Judge
        from ragwitness.models.model_registry import load_embedder
        from ragwitness.rag.lab import open_model
        from ragwitness.synthesis.agents import open_chat, others_of
        from ragwitness.synthesis.generator_registry import parse_spec

        it = self.task
        # Whatever cannot be loaded must be known before anything is spent.
        plan = replace(self.plan, embedder=load_embedder(it.embedder) if it.embedder else None)
        async with AsyncExitStack() as opened:
            model = judge = None
            specs = (parse_spec(spec) for spec in self.wanted.methods if spec != ZERO_SHOT)
            named = tuple(dict.fromkeys(role for spec in specs for role in spec.roles))
            roles = (*self.roles, *named)
            if self.model is not None or others_of(roles):
                model = await open_chat(self.model, roles, transport)
                opened.push_async_callback(model.close)
            if it.judge is not None:
                # It compares answers by meaning, so it needs an embedder even where leaks do not.
                embedder = plan.embedder or load_embedder("minilm")
                judge = Judge(await open_model(it.judge, transport), embedder)
                opened.push_async_callback(judge.model.close)
            # First all texts, then all questions: a method that fails must not leave half a
            # comparison paid for.
            made = {} if made is None else made
            variants = await self._variants(model, limiter, folder, progress, made)
            return await run_comparison(
                plan,
                variants,
                folder,
                limiter=limiter,
                judge=judge,
                settings=self._settings(plan, judge),
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
        from ragwitness.comparison.variants import (
            ZERO_SHOT,
            defended,
            made_variant,
            origin,
            read_variant,
            zero_shot,
        )
        from ragwitness.synthesis.guard import GuardConfig

        material, by_original = self.plan.material, self.wanted.by_original
        # `origin`, the records as they are, comes first: every gain and loss is a difference from
        # it.
        found = [origin(material)]
        for name, path in self.wanted.files:
            found.append(read_variant(name, path, material, by_original=by_original))
        for spec in self.wanted.methods:
            # No retrieval at all: the lower bound of usefulness and the end of every leak.
            if spec == ZERO_SHOT:
                found.append(zero_shot(material))
                continue
            variant, made[spec] = await made_variant(
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
            found.append(variant)
        return [*found, *(defended(material, spec) for spec in self.wanted.defenses)]

    def _settings(self, plan: ComparisonPlan, judge: Judge | None) -> dict[str, str]:
        """Return everything in use that is the same for all variants."""
        from ragwitness.synthesis.agents import described

        rag, original = plan.rag, "the original record: the index holds private text"
        return {
            "attacks": ", ".join(one.name for one in plan.attacks),
            "prompts of each attack": f"at most {plan.prompts}",
            "tokens of an answer": f"at most {plan.answer_tokens}",
            "retrieval": f"{rag.retrieval}, k = {rag.k}",
            "a text is found by": original if plan.by_original else "itself",
            "generator": rag.generator,
            "template": rag.template.name,
            "likeness in meaning": "not measured" if plan.embedder is None else plan.embedder.name,
            "model of the methods": self.model or "none",
            **described(self.roles),
            "judge": "none" if judge is None else "a chat model; of several references the first",
            "seed": str(plan.seed),
        }


def _making(show: Progress, spec: str, _stage: str, done: int, total: int) -> None:
    show(f"{spec}: making", done, total)


def named_pairs(given: Sequence[str] | None, form: str, what: str) -> list[tuple[str, str]]:
    """Return names with what each stands for, of NAME=VALUE.

    Args:
        given: The pairs.
        form: How one is written, for people.
        what: What a name stands for, for people.

    Raises:
        InputError: One has no such form.
    """
    pairs = []
    for one in given or ():
        name, _, value = one.partition("=")
        if not value:
            raise InputError(f"{form.split()[0]} {one!r} names no {what}.", f"Write {form}.")
        pairs.append((name, value))
    return pairs
