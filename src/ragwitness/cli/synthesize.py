"""``ragwitness synthesize``: data that may stand in a private corpus's place."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ragwitness.cli.common import console, load_saying, run_folder
from ragwitness.cli.options import (
    ChatModel,
    Contacts,
    Domain,
    DryRun,
    PrivateCorpus,
)
from ragwitness.cli.outputs import Outputs, conclude
from ragwitness.cli.steps import ask, preview
from ragwitness.cli.typer_options import Files
from ragwitness.errands.options import (
    AnswerTokens,
    Caps,
    Concurrency,
    ContactFinder,
    HowRead,
    Reached,
    RunPath,
    Secrets,
)
from ragwitness.errors import InputError, RagwitnessError
from ragwitness.kit.options import Opt, PathRole

if TYPE_CHECKING:
    from ragwitness.asking.governor import Governor
    from ragwitness.asking.worker import Progress
    from ragwitness.audits.synthesis import SynthesisResult
    from ragwitness.defenses.synthetic.base import AnyMethod
    from ragwitness.defenses.synthetic.guard import SyntheticGuard
    from ragwitness.defenses.synthetic.private.ledger import PrivacyLedger
    from ragwitness.defenses.synthetic.roles import Roles
    from ragwitness.results.synthesis import SynthesisReport
    from ragwitness.targets.transport import TransportOptions
    from ragwitness.types import Document, LeftOut, Target


def synthesize(
    corpus: PrivateCorpus,
    out: Annotated[
        Path | None, PathRole.WRITES, Opt(short="-o", shown="safe.jsonl in the run folder")
    ] = None,
    method: str = "sage",
    model: ChatModel = None,
    extractor: Annotated[str | None, PathRole.ADDRESS, Opt(shown="--model")] = None,
    generator: Annotated[str | None, PathRole.ADDRESS, Opt(shown="--model")] = None,
    judge: Annotated[str | None, PathRole.ADDRESS, Opt(shown="--model")] = None,
    rewriter: Annotated[str | None, PathRole.ADDRESS, Opt(shown="--model")] = None,
    domain: Domain = "auto",
    rounds: int = 3,
    epsilon: float | None = None,
    delta: float = 1e-6,
    public: Annotated[Path | None, PathRole.READS] = None,
    public_overlap: bool = False,
    ledger: Annotated[
        Path | None, PathRole.KEEPS, Opt(shown="ragwitness-privacy.jsonl beside the corpus")
    ] = None,
    texts: int = 50,
    secrets: Secrets = None,
    contacts: Contacts = False,
    longest_run: int = 8,
    common: int = 0,
    rouge: float = 0.5,
    recall: float = 0.65,
    cosine: Annotated[float | None, Opt(shown="not measured")] = None,
    embedder: Annotated[str, PathRole.ADDRESS] = "minilm",
    pii: ContactFinder = "auto",
    k: int = 10,
    answer_tokens: AnswerTokens = 1024,
    temperature: float = 0.6,
    attempts: int = 2,
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
    """Make synthetic records from private ones.

    A record that breaks a condition is withheld: each that passes shares no long run of words with
    any private record (redact copies them), no known secret and no contact detail. It may still
    tell a fact in other words; measure that with ragwitness leak. The private methods look at no
    condition on the records: their output depends on them by noisy counts alone, within --epsilon
    and --delta.

    Args:
        out: The JSONL file for the synthetic records.
        method: The method. With a chat model: sage, stage-1, paraphrase, paraphrase-privacy,
            paraphrase-checklist. Without one: redact, keywords. With or without: private-evolution
            and private-topics, which are differentially private.
        extractor: The model that names attributes and says what a record tells of each.
        generator: The model that writes.
        judge: The model that judges the privacy of a text.
        rewriter: The model that rewrites what was not judged safe.
        rounds: The most versions of a record that are judged; for private-evolution, the number of
            rounds of votes.
        epsilon: The private methods: the epsilon of all texts, for one record more or less.
        delta: The private methods: the delta, which must be far below 1 / number of records.
        public: Texts that are not secret. The private methods choose among them, vary them or take
            words from them; the other methods may repeat their phrases.
        public_overlap: Allow public texts that tell private records. What they hold may then be
            written, whatever epsilon is.
        ledger: The private methods: the file that adds up what was spent on the records.
        texts: The private methods: the most texts to make.
        longest_run: Withhold a text that shares so many tokens in a row with any private record.
        common: A phrase that stands in so many records may be repeated; 0 allows none.
        rouge: The highest ROUGE-L F1 with any private record.
        recall: The largest share of the words of any private record, function words left out, that
            may stand in a text, in whatever order.
        cosine: The highest cosine with any private record, by --embedder.
        embedder: The embedder: minilm, hf:NAME or URL#MODEL; for the private methods also words,
            which needs no model.
        k: keywords: the number of records in which a kept word must stand.
        temperature: The temperature at which the chat model is sampled.
        attempts: How often a question is asked while no answer can be used.
        seed: The seed of the chat model and of everything that is drawn.
        fail_on: Exit with 3 if a record has this fate, e.g. withheld, failed:3 or refused:5%. May
            be repeated.
    """
    from ragwitness.asking.governor import Governor, Pace
    from ragwitness.defenses.synthetic.agents import Asking, MakingConfig, load_domain
    from ragwitness.defenses.synthetic.base import CorpusMethod
    from ragwitness.defenses.synthetic.guard import GuardConfig, SyntheticGuard
    from ragwitness.defenses.synthetic.private.ledger import PrivacyLedger, ledger_path
    from ragwitness.defenses.synthetic.private.sources import load_embedding, overlapping
    from ragwitness.defenses.synthetic.registry import (
        METHODS,
        build_method,
        guard_config,
        needs_model,
    )
    from ragwitness.defenses.synthetic.roles import roles_of
    from ragwitness.models.registry import load_embedder
    from ragwitness.text.pii import personal_of, pii_finder
    from ragwitness.text.secrets import read_secrets

    # Step 1, the options: what is asked, what it may cost, and what a text must not share.
    outputs = Outputs.wanted("synthesis", files, fail_on)
    budget = caps.budget
    reach = reached.reach
    players = {
        "extractor": extractor, "generator": generator, "judge": judge, "rewriter": rewriter
    }  # fmt: skip
    model, roles = roles_of(model, players)
    asking = Asking(answer_tokens, temperature, attempts, seed, roles=roles)
    conditions = GuardConfig(longest_run, common, rouge, recall, cosine, pii)
    # Options that mean nothing for a method, or the opposite of what they promise, are refused.
    check_options(method, corpus, epsilon, public, looks=contacts or secrets is not None)
    # Step 2, the private records, the known secrets and, for private evolution, the privacy budget.
    loaded = load_saying(corpus, how)
    given = read_secrets(secrets) if secrets is not None else []
    records = ((one.id, one.text) for one in loaded.documents)
    known = (*given, *personal_of(records, pii_finder(pii if contacts else "none")))
    open_texts = () if public is None else _texts_of(public, how, epsilon)
    private = None
    if epsilon is not None:
        from ragwitness.defenses.synthetic.private.evolution import Candidates, PrivateConfig

        # The embedder is loaded later, by whoever draws: a preview must not load a model.
        loading = partial(load_embedding, embedder, open_texts)
        spending = PrivateConfig(epsilon, delta, texts, rounds)
        private = spending, Candidates(open_texts, embedder, loading, model)
    originals = [document.text for document in loaded.documents]
    if not public_overlap and (near := overlapping(open_texts, originals)):
        raise InputError(
            f"--public {public}: {len(near)} of {len(open_texts)} texts nearly are private records,"
            f" hold some or are long parts of some (the first is its usable text {near[0] + 1}):"
            " that could be written as it is, which no condition and no epsilon covers.",
            "Take them out, or allow them with --public-overlap if they are no secret.",
        )
    config = MakingConfig(domain=load_domain(domain), asking=asking, rounds=rounds)
    chosen = build_method(method, config, known, pii=pii, k=k, private=private)
    if needs_model(chosen) and model is None:
        raise InputError(
            f"{method} asks a chat model, and there is none.",
            "Name one, e.g. --model openai/MODEL; redact and keywords need none, and --model rules"
            " plays the roles by rules.",
        )
    # With a privacy budget a finished run is not followed by a new one: it would spend it again.
    parts = "synthesize", loaded.documents, chosen.describe(), model, conditions, known
    told = (open_texts,) if private is None and open_texts else ()
    folder = run_folder(run, *parts, *told, again=private is None)
    # Step 3, the preview.
    if dry_run:
        count = len(loaded.documents)
        most = f"at most {chosen.most(count):,} queries"
        lines = [f"{chosen.name}: {count:,} records, {most}"]
        if isinstance(chosen, CorpusMethod):
            book = PrivacyLedger(ledger or ledger_path(corpus))
            before = book.total(loaded.documents).told()
            after = book.total(loaded.documents, chosen.spend()).told()
            lines += [f"spent on these records before: {before}", f"and with a new run: {after}"]
        preview(lines, folder, budget)
        return
    # The texts replace a file as a whole; a device cannot be replaced.
    if out is not None and out.exists() and not out.is_file():
        raise InputError(f"--out {out} is a device, not a file.", "Choose another.")
    # Step 4, the making. The guard is built inside: it loads the embedder, and what cannot be
    # loaded must be known before the first query.
    with Governor.of_run(folder, budget, Pace.up_to(concurrency)) as governor:
        applied, embed = guard_config(method, conditions), None
        if METHODS[method].private:
            # Not held against the records: withholding a text because a record holds it would tell
            # that, outside epsilon (docs/design/dp-synthesis.md).
            guard = SyntheticGuard((), (), applied)
        else:
            if applied.cosine is not None:
                embed = load_embedder(embedder).embed
            guard = SyntheticGuard(originals, known, applied, embed, open_texts)
        transport = reach.transport(concurrency, governor.setback)
        booked = PrivacyLedger(ledger or ledger_path(corpus)) if private else None
        result = make(
            loaded.documents, chosen, guard, model, roles, transport, folder, governor, booked
        )
    # Step 5, the conclusion: texts that passed, what became of the others, the exit code.
    finish(result, loaded.left_out, folder, out, outputs)


# The steps of ``ragwitness synthesize``: read, make, write, show.


def make(
    documents: Sequence[Document],
    method: AnyMethod,
    guard: SyntheticGuard,
    model: str | None,
    roles: Roles,
    transport: TransportOptions,
    folder: Path,
    governor: Governor,
    ledger: PrivacyLedger | None = None,
) -> SynthesisResult:
    """Make the texts with a progress bar.

    Raises:
        TargetError: The model cannot be reached, or does not speak the protocol.
        CapReachedError: A cap was reached before the first record.
    """
    from ragwitness.audits.synthesis import run_synthesis
    from ragwitness.defenses.synthetic.base import CorpusMethod
    from ragwitness.lab import open_chat

    async def work(target: Target | None, progress: Progress) -> SynthesisResult:
        return await run_synthesis(
            documents,
            method,
            guard,
            target,
            run=folder,
            in_flight=transport.concurrency,
            progress=progress,
            governor=governor,
            ledger=ledger,
        )

    # A method that asks nobody opens nothing, whatever --model says.
    own = tuple((r, address) for r, address in roles if r in getattr(method, "roles", ()))
    opening = open_chat(model, own, transport) if method.asks else None
    items = "queries" if isinstance(method, CorpusMethod) else "records"
    return ask(opening, work, folder, governor, items)


def finish(
    result: SynthesisResult,
    left_out: tuple[LeftOut, ...],
    folder: Path,
    out: Path | None,
    outputs: Outputs,
) -> None:
    """Write the texts and the report; show what became of the records.

    Raises:
        RagwitnessError: No record passed, or a file cannot be written.
    """
    from ragwitness.audits.synthesis import write_made
    from ragwitness.kit.run_files import REPORT, RESULT, SAFE

    path, screen = out or folder / SAFE, console()
    # Texts first: they are what was paid for. An empty file would look like a corpus without
    # records.
    passed = bool(result.counts.get("passed"))
    if passed:
        write_made(path, result)
        screen.print(f"synthetic records: {path}", markup=False, soft_wrap=True)
    # Fail closed: where nothing passed there is a report, an exit code and no texts
    # (docs/design/synthetic-data.md).
    report = _report(result, left_out, str(path) if passed else None)
    conclude(report, folder / REPORT, screen, outputs, store=folder)
    if not passed:
        raise RagwitnessError(
            "No synthetic text may be used; nothing was written.",
            f"{folder / RESULT} says why for each.",
        )


def _report(
    result: SynthesisResult, left_out: tuple[LeftOut, ...], path: str | None
) -> SynthesisReport:
    """The result for machines; it holds no text, only what became of each record."""
    from ragwitness.results.synthesis import RecordFate, SynthesisReport

    return SynthesisReport(
        method=result.method,
        model=result.model,
        settings=dict(result.settings),
        counts=result.counts,
        reasons=result.reasons,
        left_out=left_out,
        records=tuple(
            RecordFate(one.record, str(one.fate), one.reason, one.rounds, one.violation)
            for one in result.made
        ),
        queries=result.queries,
        sent=result.sent,
        seconds=result.seconds,
        spent=result.spent,
        warnings=tuple(result.warnings),
        out=path,
    )


# The privacy budget of ``ragwitness synthesize``: read before anything is asked.

_LONGEST = 20_000  # characters of a public text, as of a record


def check_options(
    method: str, corpus: str, epsilon: float | None, public: Path | None, *, looks: bool
) -> None:
    """Refuse options that mean nothing, or the opposite, for a method.

    Args:
        method: Name.
        corpus: The private records.
        epsilon: Of the budget, where one is given.
        public: File of public texts, where one is given.
        looks: Whether secrets of the records are to be looked for.

    Raises:
        InputError: A budget for a method without one, secrets for one with a budget, public texts
            for one that copies, or the private records as public texts.
    """
    from ragwitness.defenses.synthetic.registry import METHODS

    # A budget on a method without one would promise what nothing keeps.
    if method not in METHODS or not METHODS[method].private:
        if epsilon is not None:
            raise InputError(
                f"{method} is not differentially private and has no use for --epsilon.",
                "Take --method private-evolution or private-topics, or leave it out.",
            )
        if public is not None and method in METHODS and METHODS[method].copies:
            raise InputError(
                f"{method} copies what its records hold and has no use for --public.",
                "Leave it out.",
            )
    elif looks:
        raise InputError(
            f"{method} cannot look for secrets of the records: a text that is withheld for one"
            " tells that a record holds it, and epsilon would not cover that.",
            "Leave out --secrets and --contacts.",
        )
    # Compared as files, not as names: a link to the corpus is the corpus.
    both = public is not None and os.path.exists(corpus) and public.exists()
    if both and os.path.samefile(corpus, str(public)):
        raise InputError(
            f"--public {public} is the private corpus itself: its records would be written as"
            " they are.",
            "Give texts that are no secret, e.g. a published collection of the same kind.",
        )


def _texts_of(public: Path, how: HowRead, epsilon: float | None) -> tuple[str, ...]:
    from ragwitness.defenses.synthetic.base import flaw
    from ragwitness.text.documents import load_documents

    if not public.exists():
        raise InputError(f"--public {public} does not exist.", "Check the path.")
    found = (d.text for d in load_documents(public, **dataclasses.asdict(how)).documents)
    texts = tuple(dict.fromkeys(text for text in found if flaw(text, _LONGEST) is None))
    # A private method chooses among them: of one there is no choice.
    if len(texts) < (1 if epsilon is None else 2):
        raise InputError(
            f"--public {public} has {len(texts)} usable texts, which is too few.",
            "For a private method, give many more than --texts; else leave it out.",
        )
    return texts
