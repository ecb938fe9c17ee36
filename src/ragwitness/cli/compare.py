"""``ragwitness compare``: what other data in a corpus's place buys in privacy and costs in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from ragwitness.cli.common import console, progress_bars, read_documents, run_folder
from ragwitness.cli.options import (
    AttackSettings,
    ChatModel,
    Contacts,
    Domain,
    DryRun,
    Generator,
    Information,
    PrivateCorpus,
    Retrieval,
    RolePlayers,
    Template,
)
from ragwitness.cli.outputs import Outputs, conclude
from ragwitness.cli.steps import spent_so_far, wait
from ragwitness.cli.typer_options import Files
from ragwitness.defenses.synthetic.roles import described, others_of, roles_of
from ragwitness.errands.carry import per_method
from ragwitness.errands.leak import attacks_of, names_of, plan_of
from ragwitness.errands.options import (
    AnswerTokens,
    Caps,
    Concurrency,
    ContactFinder,
    Decoys,
    HowRead,
    Prompts,
    Reached,
    RunPath,
    Secrets,
)
from ragwitness.errors import InputError
from ragwitness.kit.options import Opt, PathRole
from ragwitness.lab import open_chat, open_model, rag_config

if TYPE_CHECKING:
    from ragwitness.asking.budget import Budget
    from ragwitness.asking.governor import Governor
    from ragwitness.asking.worker import Progress
    from ragwitness.audits.order import Reach
    from ragwitness.audits.synthesis import SynthesisResult
    from ragwitness.audits.variants import ComparisonPlan, Material, Variant
    from ragwitness.defenses.synthetic.agents import MakingConfig
    from ragwitness.defenses.synthetic.roles import Roles
    from ragwitness.extraction.attacks.base import Attack, Limits
    from ragwitness.models.base import Embedder
    from ragwitness.results.comparison import Comparison
    from ragwitness.types import LeftOut, Target


def compare(
    corpus: PrivateCorpus,
    given: Annotated[list[str] | None, PathRole.PAIRS, Opt("--with", metavar="NAME=FILE")] = None,
    methods: Annotated[
        list[str] | None, Opt("--method", shown="redact and keywords, if nothing else is compared")
    ] = None,
    defenses: Annotated[list[str] | None, Opt("--defense")] = None,
    questions: Annotated[
        Path | None,
        PathRole.READS,
        Opt(shown="the fields question and answer of the records held out"),
    ] = None,
    held_out: Annotated[
        int | None, Opt(shown="a tenth, at most 100; 0 with --questions and --background")
    ] = None,
    utility: bool = True,
    judge: Annotated[str | None, PathRole.ADDRESS] = None,
    attacks: str = "composite",
    prompts: Prompts = 100,
    answer_tokens: AnswerTokens = 256,
    information: Information = None,
    options: AttackSettings = None,
    background: Annotated[str | None, PathRole.DOCUMENTS, Opt(shown="the records held out")] = None,
    secrets: Secrets = None,
    decoys: Decoys = None,
    contacts: Contacts = False,
    retrieval: Retrieval = "lexical",
    retrieve_by: str = "own",
    generator: Generator = "reader",
    k: int = 1,
    template: Template = "plain",
    embedder: Annotated[str | None, PathRole.ADDRESS] = None,
    model: ChatModel = None,
    role: RolePlayers = None,
    domain: Domain = "auto",
    rounds: int = 3,
    pii: ContactFinder = "auto",
    seed: int = 0,
    *,
    how: HowRead,
    run: RunPath = None,
    files: Files | None = None,
    fail_on: Annotated[list[str] | None, Opt(metavar="CONDITION")] = None,
    concurrency: Concurrency = 4,
    caps: Caps,
    dry_run: DryRun = False,
    reached: Reached,
) -> None:
    """Compare substitutes of a corpus: privacy against use.

    Each substitute is indexed in a RAG system in this process, attacked with the same prompts and
    asked the same questions; leaks are counted against the original records. Caps and prices are
    those of the chat models (--model and --judge).

    Args:
        given: Texts that stand for the records, under the same ids. May be repeated.
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
        background: Texts that are like the corpus and that no index holds. They show what is found
            by chance.
        retrieve_by: How a text is found: own, by itself; original, by the private record, as in
            SAGE.
        k: The number of passages for each query, which is 1 in SAGE.
        embedder: Measure likeness in meaning too, by this embedder: minilm, hf:NAME or URL#MODEL.
            The judge uses it as well, or minilm.
        rounds: The most versions of a record that are judged.
        seed: The seed of the random split, of the prompts and of the resampling.
        fail_on: Exit with 3 if a substitute leaks this much, e.g. 'repeat records > 0'. The
            conditions are those of leak. May be repeated.
    """
    from ragwitness.audits.leak import refuse_records
    from ragwitness.audits.variants import ComparisonPlan
    from ragwitness.extraction.attacks.base import Limits
    from ragwitness.kit.run_files import REPORT
    from ragwitness.models.registry import load_embedder

    # Step 1, the options: conditions, variants, budget, limits.
    outputs = Outputs.wanted("comparison", files, fail_on)
    model, roles = roles_of(model, players_of(role or ()))
    wanted = chosen(given or (), methods or (), defenses or (), model, retrieve_by, roles)
    budget = caps.budget
    reach = reached.reach
    limits = Limits(prompts, answer_tokens, seed)
    # Step 2, the material: the corpus is divided once, and every variant is asked the same
    # questions and the same prompts about the same records.
    if judge is not None and not utility:
        raise InputError("--no-utility leaves nothing to judge.", "Leave --judge out.")
    material = material_of(
        corpus,
        how,
        held_out,
        seed,
        questions,
        background,
        (secrets, decoys),
        contacts=contacts,
        utility=utility,
    )
    public = [one.text for one in read_documents(information)] if information else []
    refuse_records("--information", public, material.records)
    made = attacks_of(names_of(attacks, None), limits, per_method(options), texts=public)
    rag = rag_config(k=k, retrieval=retrieval, generator=generator, template=template)
    making = Making(model, domain, rounds, pii, seed, concurrency, reach, roles)
    given_too = (attacks, sorted(options or ()), public, model, domain, rounds, pii, judge)
    # Everything that an answer depends on names the run, the models of the methods and of the judge
    # too.
    folder = run_folder(run, "compare", corpus, material, wanted, limits, rag, given_too, *roles)
    # Step 3, the preview.
    if dry_run:
        preview(wanted, material, made, limits, judge, making, folder, budget)
        return
    # Whatever cannot be loaded must be known before anything is spent.
    named = load_embedder(embedder) if embedder else None
    plan = ComparisonPlan(
        material, made, prompts, answer_tokens, rag, wanted.by_original, seed, named
    )
    # The judge compares answers by meaning, so it needs an embedder even where leaks do not.
    judging = None if judge is None else (judge, named or load_embedder("minilm"))
    # Step 4, making and asking; step 5, the conclusion.
    result = ask(plan, wanted, making, judging, folder, budget)
    conclude(result, folder / REPORT, console(), outputs, store=folder)


# The first steps of ``ragwitness compare``: what is compared, and how.

_MODELLESS = ("redact", "keywords")  # made where nothing else is named


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


@dataclass(frozen=True, slots=True)
class Making:
    """How texts are made on the spot.

    Attributes:
        model: Address of the chat model; None for none.
        domain: What the records are.
        rounds: Most versions of a record.
        pii: Who finds contact details.
        seed: Of the model.
        concurrency: Queries under way at most.
        reach: How models are reached.
        roles: Who plays the roles that the model does not play.
    """

    model: str | None
    domain: str
    rounds: int
    pii: str
    seed: int
    concurrency: int
    reach: Reach
    roles: Roles = ()

    def config(self) -> MakingConfig:
        """Return the configuration of methods that ask a model.

        Raises:
            InputError: There is no such domain.
        """
        from ragwitness.defenses.synthetic.agents import Asking, MakingConfig, load_domain

        asking = Asking(seed=self.seed, roles=self.roles)
        return MakingConfig(domain=load_domain(self.domain), asking=asking, rounds=self.rounds)


def players_of(given: Sequence[str]) -> dict[str, str | None]:
    """Return who plays which role, from ROLE=MODEL.

    Raises:
        InputError: One has no such form.
    """
    found: dict[str, str | None] = {}
    for one in given:
        role, equals, address = one.partition("=")
        if not equals or not address:
            raise InputError(f"--role {one!r} names no model.", "Write --role judge=MODEL.")
        found[role] = address
    return found


def chosen(
    files: Sequence[str],
    methods: Sequence[str],
    defenses: Sequence[str],
    model: str | None,
    retrieve_by: str,
    roles: Roles = (),
) -> Wanted:
    """Return the variants, each name once.

    Raises:
        InputError: A name or method is unknown or taken, or a model is needed and missing.
    """
    from ragwitness.audits.variants import ZERO_SHOT, check_method, check_name
    from ragwitness.defenses.registry import load_defense

    if retrieve_by not in ("own", "original"):
        raise InputError(f"--retrieve-by is own or original, not {retrieve_by!r}.")
    named = []
    for one in files:
        name, equals, path = one.partition("=")
        if not equals or not path:
            raise InputError(f"--with {one!r} names no file.", "Write --with NAME=FILE.")
        named.append((check_name(name), Path(path)))
    # Without any name: what can be made with no model and no file.
    if not (files or methods or defenses):
        methods = _MODELLESS
    for spec in methods:
        if spec == ZERO_SHOT:
            continue
        if check_method(spec, roles) and model is None:
            raise InputError(
                f"{spec} asks a chat model, and there is none.",
                f"Name one with --model, or give its texts: --with {spec}=safe.jsonl",
            )
    # Loaded once to find out whether it can be; each variant loads its own.
    for spec in defenses:
        load_defense(spec)
    wanted = Wanted(tuple(named), tuple(methods), tuple(defenses), retrieve_by == "original")
    # Names key the journals of variants: two of one name would read each other's answers.
    if twice := [name for name in wanted.names if wanted.names.count(name) > 1]:
        raise InputError(f"Two variants are called {twice[0]}.", "Rename one: --with NAME=FILE.")
    return wanted


def material_of(
    corpus: str,
    how: HowRead,
    held_out: int | None,
    seed: int,
    questions: Path | None,
    background: str | None,
    ledgers: tuple[Path | None, Path | None],
    *,
    contacts: bool,
    utility: bool,
) -> Material:
    """Read the corpus and divide it.

    Raises:
        InputError: Something cannot be read, or there is no question where there must be some.
    """
    from ragwitness.audits.variants import default_held_out, divide, own_questions, read_questions

    if not utility and questions is not None:
        raise InputError("--no-utility asks no questions.", "Leave --questions out.")
    told = () if questions is None else read_questions(questions)
    lost: list[LeftOut | str] = []
    records = read_documents(corpus, how, left_out=lost)
    others = read_documents(background, how, left_out=lost) if background else ()
    known = plan_of(records, others, ledgers, contacts=contacts, seed=seed)
    own = own_questions(corpus) if utility and questions is None else None
    if own is not None and not own:
        raise InputError(
            f"There are no questions: {corpus} has no JSON lines with fields question and answer.",
            "Give --questions FILE, or --no-utility to measure privacy alone.",
        )
    # Held-out records serve as questions and as background; whoever gives both files needs none.
    if held_out is None:
        spare = questions is not None and background is not None
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
        seed,
        own=own,
        questions=told,
        background=others,
        secrets=known.secrets,
        decoys=known.decoys,
    )
    return replace(divided, left_out=tuple(lost))


def preview(
    wanted: Wanted,
    material: Material,
    attacks: Sequence[Attack],
    limits: Limits,
    judge: str | None,
    making: Making,
    folder: Path,
    budget: Budget,
) -> None:
    """Say what would be asked at most, and what the run folder keeps; send nothing."""
    from ragwitness.cli.steps import preview as show_preview
    from ragwitness.defenses.synthetic.registry import build_method, parse_spec

    systems, told = len(wanted.names), len(material.questions)
    lines = [
        f"{systems} variants of {len(material.records):,} records: {', '.join(wanted.names)}",
        f"each: at most {limits.prompts:,} prompts of {len(attacks)} attacks and {told:,}"
        f" questions, answers of at most {limits.max_tokens:,} tokens, in this process",
    ]
    if judge:
        lines.append(f"{judge}: at most {4 * systems * told:,} queries to judge answers")
    for spec in wanted.methods:
        if spec == "zero-shot":
            continue
        parsed = parse_spec(spec)
        method = build_method(parsed.name, parsed.config(making.config()), evaluation=True)
        if method.asks:
            most = method.most(len(material.records))
            lines.append(
                f"{making.model or 'models by role'}: at most {most:,} queries to make {spec}"
            )
    show_preview(lines, folder, budget)


# The last steps of ``ragwitness compare``: make, ask, show.


def ask(
    plan: ComparisonPlan,
    wanted: Wanted,
    making: Making,
    judging: tuple[str, Embedder] | None,
    folder: Path,
    budget: Budget,
    made: dict[str, SynthesisResult] | None = None,
) -> Comparison:
    """Make what is to be made and compare, with progress bars; Ctrl-C leaves answers kept.

    Args:
        plan: How variants are compared.
        wanted: The variants.
        making: How texts are made.
        judging: Address of the judge and its embedder; None for none.
        folder: Of the run.
        budget: Caps and prices of the chat models.
        made: Filled with what was made, by method; None where nobody asks.

    Raises:
        TargetError: A chat model cannot be reached, or does not speak the protocol.
        InputError: A text cannot be used.
    """
    from ragwitness.asking.governor import Governor, Pace

    with Governor.of_run(folder, budget, Pace.up_to(making.concurrency)) as governor:
        work = _ask(plan, wanted, making, judging, folder, governor, {} if made is None else made)
        return wait(work, folder)


async def _ask(
    plan: ComparisonPlan,
    wanted: Wanted,
    making: Making,
    judging: tuple[str, Embedder] | None,
    folder: Path,
    governor: Governor,
    made: dict[str, SynthesisResult],
) -> Comparison:
    from contextlib import AsyncExitStack

    from ragwitness.audits.comparison import run_comparison
    from ragwitness.audits.variants import ZERO_SHOT, Judge
    from ragwitness.defenses.synthetic.registry import parse_spec

    transport = making.reach.transport(making.concurrency, governor.setback)
    async with AsyncExitStack() as open_ones:
        show = open_ones.enter_context(progress_bars(console(), spent_so_far(governor), "asked"))
        model = judge = None
        specs = (parse_spec(spec) for spec in wanted.methods if spec != ZERO_SHOT)
        named = tuple(dict.fromkeys(role for spec in specs for role in spec.roles))
        roles = (*making.roles, *named)
        if making.model is not None or others_of(roles):
            model = await open_chat(making.model, roles, transport)
            open_ones.push_async_callback(model.close)
        if judging is not None:
            judge = Judge(await open_model(judging[0], transport), judging[1])
            open_ones.push_async_callback(judge.model.close)
        # First all texts, then all questions: a method that fails must not leave half a comparison
        # paid for.
        variants = await _variants(plan, wanted, making, model, folder, governor, show, made)
        settings = _settings(plan, making, judge)
        return await run_comparison(
            plan, variants, folder, governor=governor, judge=judge, settings=settings, progress=show
        )


async def _variants(
    plan: ComparisonPlan,
    wanted: Wanted,
    making: Making,
    model: Target | None,
    folder: Path,
    governor: Governor,
    show: Progress,
    made: dict[str, SynthesisResult],
) -> list[Variant]:
    """Read, make and defend, in the order in which they were named."""
    from ragwitness.audits.variants import (
        ZERO_SHOT,
        defended,
        made_variant,
        origin,
        read_variant,
        zero_shot,
    )
    from ragwitness.defenses.synthetic.guard import GuardConfig

    material = plan.material
    # `origin`, the records as they are, comes first: every gain and loss is a difference from it.
    found = [origin(material)]
    for name, path in wanted.files:
        found.append(read_variant(name, path, material, by_original=wanted.by_original))
    for spec in wanted.methods:
        # No retrieval at all: the lower bound of usefulness and the end of every leak.
        if spec == ZERO_SHOT:
            found.append(zero_shot(material))
            continue
        variant, made[spec] = await made_variant(
            spec,
            material,
            making.config(),
            GuardConfig(pii=making.pii),
            model=model,
            run=folder / spec / "making",
            in_flight=making.concurrency,
            progress=partial(_making, show, spec),
            governor=governor,
        )
        found.append(variant)
    return [*found, *(defended(material, spec) for spec in wanted.defenses)]


def _making(show: Progress, spec: str, _stage: str, done: int, total: int) -> None:
    show(f"{spec}: making", done, total)


def _settings(plan: ComparisonPlan, making: Making, judge: object) -> dict[str, str]:
    """Return everything in use that is the same for all variants."""
    rag = plan.rag
    found_by = "the original record: the index holds private text" if plan.by_original else "itself"
    return {
        "attacks": ", ".join(one.name for one in plan.attacks),
        "prompts of each attack": f"at most {plan.prompts}",
        "tokens of an answer": f"at most {plan.answer_tokens}",
        "retrieval": f"{rag.retrieval}, k = {rag.k}",
        "a text is found by": found_by,
        "generator": rag.generator,
        "template": rag.template.name,
        "likeness in meaning": "not measured" if plan.embedder is None else plan.embedder.name,
        "model of the methods": making.model or "none",
        **described(making.roles),
        "judge": "none" if judge is None else "a chat model; of several references the first",
        "seed": str(plan.seed),
    }
