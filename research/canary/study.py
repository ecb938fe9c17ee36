"""The controlled study: tables of conditions, and a trial for each of their policies.

A table is TOML with conditions, seeds and what was published (``experiments/canary``). Trials run
side by side in processes; each is in the journal once it is done, and never run again. Base models
are trained once and kept.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

from ragwitness.canary.draw import Design, settings_of
from ragwitness.canary.examples import Example, read_examples
from ragwitness.canary.families import Family
from ragwitness.errors import InputError, ModelError, RagwitnessError
from ragwitness.kit.files import Appender, replace_file
from research.canary.feedback import Curation, VoteConfig
from research.canary.natural import name_signatures, natural_base, natural_examples
from research.canary.optimisation import PolicyConfig
from research.canary.policies import Base, Lora, load_base, name_markers, one_thread, save_policy
from research.canary.reward import RewardConfig
from research.canary.trial import Outcome, TrialConfig, World, run_arm, stage_trial
from research.canary.worlds import (
    KINDS,
    Cut,
    Obedience,
    Pretraining,
    check_obedience,
    obedience,
    study_examples,
    text_base,
    toy_base,
    toy_examples,
)
from research.reproduce.tables import read_table

Show = Literal["detection", "utility", "amplification"]


@dataclass(frozen=True, slots=True)
class WorldSpec:
    """Where examples and base model come from.

    Attributes:
        kind: ``toy``, ``natural`` (:mod:`research.canary.natural`) or ``texts``.
        examples: Of a trial.
        corpus: File in the data folder, for ``texts``.
        model: Folder of a policy, or a cached hub name; empty trains one here.
        cut: Fields of how a corpus is made short.
        device: Of torch.
        dtype: Of the weights of ``model``; ``bfloat16`` where adapters alone are trained.
        training: Fields of the base's own training.
        start: Begin it at the toy's base, which has the same shape, instead of at chance.
        gate: Refuse a base that does not follow the paper's instruction.
        ordinary: File in the data folder whose texts a curator reads.
    """

    kind: Literal["toy", "natural", "texts"] = "toy"
    examples: int = 4000
    corpus: str = ""
    model: str = ""
    cut: Mapping[str, Any] = field(default_factory=dict)
    device: str = "cpu"
    dtype: str = "float32"
    training: Mapping[str, Any] = field(default_factory=dict)
    start: bool = False
    gate: bool = True
    ordinary: str = ""


@dataclass(frozen=True, slots=True)
class StudyCase:
    """One condition.

    Attributes:
        label: Its name.
        world: Where examples come from.
        trial: Settings of every trial.
        seeds: Of the violating, then of the compliant trials.
        statistic: P-value that decides: a field of a trial's outcome.
        published: What the paper prints, by measure.
    """

    label: str
    world: WorldSpec
    trial: TrialConfig
    seeds: tuple[range, range]
    statistic: str
    published: Mapping[str, Any]

    @property
    def trials(self) -> list[tuple[int, bool]]:
        """Seed and arm of every trial, arms in turn, so that a part is balanced."""
        both = [(seed, True) for seed in self.seeds[0]] + [(seed, False) for seed in self.seeds[1]]
        return sorted(both, key=lambda one: (one[0], not one[1]))


@dataclass(frozen=True, slots=True)
class StudyTable:
    """One table or figure.

    Attributes:
        name: ``paper/table``.
        title: What it shows, and under which conditions it was published.
        show: Which measures.
        cases: Its conditions.
        note: What a reader must know.
    """

    name: str
    title: str
    show: Show
    cases: tuple[StudyCase, ...]
    note: str = ""

    def small(self, policies: int) -> StudyTable:
        """Return the table with at most so many policies in each arm.

        Raises:
            InputError: There would be none.
        """
        if policies < 1:
            raise InputError("A study needs one policy in each arm at least.")
        cases = [
            replace(one, seeds=(one.seeds[0][:policies], one.seeds[1][:policies]))
            for one in self.cases
        ]
        return replace(self, cases=tuple(cases))


def load_study_table(name: str, folder: Path) -> StudyTable:
    """Return a table by its name.

    Args:
        name: ``paper/table``, e.g. ``"canary/table1"``.
        folder: Holds ``paper/tables.toml``.

    Raises:
        InputError: There is no such table, it is malformed, or a setting is outside its range.
    """
    data = read_table(name, folder)
    if "like" in data:  # what another table of the paper sets, but for its cases
        data = read_table(f"{name.partition('/')[0]}/{data['like']}", folder) | data
    try:
        cases = tuple(_case(row, data) for row in data["case"])
        show = data.get("show", "detection")
        if show not in get_args(Show):
            raise ValueError(f"show is one of {', '.join(get_args(Show))}")
        return StudyTable(name, data["title"], show, cases, data.get("note", ""))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"The table {name!r} is malformed: {error}.") from error


def _case(row: Mapping[str, Any], table: Mapping[str, Any]) -> StudyCase:
    """A condition, over what the table sets for all of them."""
    merged = {
        key: {**table.get(key, {}), **row.get(key, {})}
        for key in ("world", "design", "votes", "reward", "policy", "curation", "trial")
    }
    first = row.get("first_seed", table["first_seed"])
    counts = [row.get(arm, table.get(arm, 0)) for arm in ("violating", "compliant")]
    return StudyCase(
        label=row["label"],
        world=WorldSpec(**merged["world"]),
        trial=_trial(merged),
        seeds=(range(first, first + counts[0]), range(first, first + counts[1])),
        statistic=row.get("statistic", table.get("statistic", "p_own")),
        published=row.get("published", {}),
    )


def _trial(given: Mapping[str, Mapping[str, Any]]) -> TrialConfig:
    design = {"family": Family(given["design"].get("family", "signature"))}
    own = dict(given["trial"])
    if "shares" in own:
        own["shares"] = tuple(own["shares"])
    return TrialConfig(
        # As it was when the journals were written; a trial scores its policies by itself.
        design=Design(**{**Design.former, "held_out": 32, **given["design"], **design}),
        votes=VoteConfig(**given["votes"]),
        reward=RewardConfig(**_with_lora(given["reward"])),
        policy=PolicyConfig(**_with_lora(given["policy"])),
        curation=Curation(**given["curation"]),
        **own,
    )


def _with_lora(given: Mapping[str, Any]) -> dict[str, Any]:
    lora = given.get("lora")
    return dict(given) | ({"lora": Lora(**lora)} if isinstance(lora, Mapping) else {})


# The base models of a study, trained once and kept.

_VERSION = 3  # raise it where code changes what a trial gives: older bases and rows are made anew


@dataclass(frozen=True, slots=True)
class WorldFolders:
    """Where things are.

    Attributes:
        data: Of the corpora; None where the table needs none.
        bases: Of the base models that are trained here.
    """

    data: Path | None
    bases: Path

    def corpus(self, name: str) -> Path:
        """Return the path of a corpus.

        Raises:
            InputError: It is not there.
        """
        path = None if self.data is None else self.data / name
        if path is None or not path.is_file():
            raise InputError(
                f"The corpus {name} is not there.",
                "Give the folder of the corpora with --data DIR.",
            )
        return path

    def digest(self, name: str) -> str:
        """Return SHA-256 of a corpus in hex; empty where none is named."""
        return hashlib.sha256(self.corpus(name).read_bytes()).hexdigest() if name else ""


def prepare_base(
    spec: WorldSpec, folders: WorldFolders, say: Callable[[str], None] = lambda _: None
) -> Path | str:
    """Return the folder or name of a world's base; train it where that is not done.

    Raises:
        InputError: A corpus is missing.
        MissingExtraError: torch or transformers is not installed.
    """
    if spec.model:
        return spec.model
    content = json.dumps(base_contents(spec, folders), sort_keys=True)
    digest = hashlib.sha256(content.encode()).hexdigest()[:12]
    folder = folders.bases / f"{spec.kind}-{digest}"
    if not folder.is_dir():
        say(f"training the base {folder.name}")
        one_thread(spec.device)
        _save(_train(spec, folders), folder)
    return folder


def base_contents(spec: WorldSpec, folders: WorldFolders) -> dict[str, Any]:
    """Return everything that a base follows from, defaults included.

    Raises:
        InputError: A corpus is missing.
    """
    return {
        "version": _VERSION,
        "kind": spec.kind,
        "model": spec.model,
        "dtype": spec.dtype,
        "training": asdict(Pretraining(**spec.training)),
        "cut": asdict(Cut(**spec.cut)),
        "corpus": folders.digest(spec.corpus),
        "start": base_contents(start_of(spec), folders) if spec.start else "",
    }


def start_of(spec: WorldSpec) -> WorldSpec:
    """Return the toy world whose base another world's begins at."""
    shape = {name: spec.training[name] for name in ("width", "layers") if name in spec.training}
    return WorldSpec(training=shape, device=spec.device, gate=spec.gate)


# A base that does not follow the paper's instruction teaches its policies something else.

_PROMPTS = 512  # held-out examples of the gate


def gate(
    spec: WorldSpec, folders: WorldFolders, say: Callable[[str], None] = lambda _: None
) -> Obedience | None:
    """Return what a world's base does with the paper's instruction; measured once and kept.

    None where the world has no gate.

    Raises:
        InputError: A corpus is missing, or has too few examples.
        ModelError: It does not follow the instruction, and the world has a gate.
    """
    source = prepare_base(spec, folders, say)
    if not spec.gate:
        return None
    content = json.dumps([base_contents(spec, folders), _PROMPTS], sort_keys=True)
    name = hashlib.sha256(content.encode()).hexdigest()[:12]
    kept = folders.bases / f"obedience-{name}.json"
    if kept.is_file():
        seen = Obedience(**json.loads(kept.read_bytes()))
    else:
        one_thread(spec.device)
        world = make_world(asdict(replace(spec, examples=_PROMPTS)), folders)
        examples = world.draw(random.Random("obedience"))
        seen = obedience(world.base, world.named, examples, _longest(examples, world.base))
        kept.parent.mkdir(parents=True, exist_ok=True)
        replace_file(kept, json.dumps(asdict(seen)))
        shares = ", ".join(f"{kind} {seen.share(kind).value:.3f}" for kind in KINDS)
        say(f"the base {Path(source).name} says the canary: {shares} (n = {seen.count})")
    check_obedience(seen, Path(source).name)
    return seen


def _longest(examples: Sequence[Example], base: Base) -> int:
    """Tokens that the longest reference answer takes with a canary in it."""
    rows = base.encode_answers([one.answer for one in examples])
    return max(map(len, rows)) + len(base.encode([" ZXYPRKLMQST"])[0])


def make_world(spec: Mapping[str, Any], folders: WorldFolders) -> World:
    """Load a world whose base has been prepared."""
    own = WorldSpec(**spec)
    base = load_base(str(prepare_base(own, folders)), own.dtype)
    # A base trained here knows spare markers; another one reads the strings as they are.
    namer = name_signatures if own.kind == "natural" else name_markers
    named: dict[str, Any] = {} if own.model else {"named": namer}
    if own.kind == "natural":
        texts = list(read_examples(folders.corpus(own.ordinary))) if own.ordinary else []
        random.Random(0).shuffle(texts)
        world = World(base, lambda rng: natural_examples(own.examples, rng), **named)
        return replace(world, texts=texts)
    if own.kind == "toy":
        return World(base, lambda rng: toy_examples(own.examples, rng), **named)
    examples = study_examples(folders.corpus(own.corpus), Cut(**own.cut))
    if len(examples) < own.examples:
        raise InputError(
            f"{own.corpus} has {len(examples)} examples left for a study, not {own.examples}.",
            "Lower examples in the table.",
        )
    return World(base, lambda rng: rng.sample(examples, own.examples), **named)


def _train(spec: WorldSpec, folders: WorldFolders) -> Base:
    config = Pretraining(**spec.training)
    if spec.kind != "texts":
        return toy_base(config) if spec.kind == "toy" else natural_base(config)
    start = load_base(str(prepare_base(start_of(spec), folders))) if spec.start else None
    return text_base(folders.corpus(spec.corpus), Cut(**spec.cut), config, start)


def _save(base: Base, folder: Path) -> None:
    """Whole or not at all: another study may look for it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        half = Path(work) / "base"
        save_policy(base, base.model, half)
        os.replace(half, folder)


JOURNAL = "policies.jsonl"
"""One line per trained policy."""


@dataclass(frozen=True, slots=True)
class _Unit:
    """One seed to run, in one arm or both: they share draw, answers and votes.

    Attributes:
        case: Condition.
        seed: Of everything.
        folders: Where things are.
        keys: Of its policies in the journal, by arm.
    """

    case: StudyCase
    seed: int
    folders: WorldFolders
    keys: tuple[tuple[bool, str], ...]


def run_study(
    table: StudyTable,
    folders: WorldFolders,
    out: Path,
    *,
    processes: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> list[tuple[StudyCase, list[Outcome]]]:
    """Train and audit every policy of a table that the journal does not hold.

    Args:
        table: Conditions.
        folders: Corpora, and where bases are kept.
        out: Folder of the journal.
        processes: Policies trained at once, one thread each.
        say: Told of every policy.

    Returns:
        The outcomes of each condition, by seed.

    Raises:
        InputError: A corpus is missing, or a setting is unusable.
        MissingExtraError: torch or transformers is not installed.
    """
    if processes < 1:
        raise InputError("At least one process is needed.")
    keys = {
        (number, seed, violating): _key(case, seed, violating, folders)
        for number, case in enumerate(table.cases)
        for seed, violating in case.trials
    }
    # Conditions that tables of one paper share are trained once.
    beside = sorted(out.parent.glob(f"*/{JOURNAL}"))
    done = {key: row for path in beside for key, row in _read(path).items()}
    units: dict[tuple[int, int], _Unit] = {}
    for (number, seed, violating), key in keys.items():
        if key not in done:
            unit = units.get((number, seed), _Unit(table.cases[number], seed, folders, ()))
            units[number, seed] = replace(unit, keys=(*unit.keys, (violating, key)))
    # Every base is gated before the first policy of any condition is trained.
    for number, case in enumerate(table.cases):
        if any(place == number for place, _ in units):
            gate(case.world, folders, say)
    journal = Appender(out / JOURNAL, "journal")
    try:
        for unit, outcomes in _results(list(units.values()), processes):
            for (violating, key), outcome in zip(unit.keys, outcomes, strict=True):
                done[key] = outcome
                journal.append({"key": key, "case": unit.case.label, "outcome": outcome})
                say(_told(unit, violating, outcome))
    finally:
        journal.close()
    return [
        (case, [_outcome(done[keys[number, *trial]]) for trial in case.trials])
        for number, case in enumerate(table.cases)
    ]


def _results(units: list[_Unit], processes: int) -> Iterator[tuple[_Unit, list[dict[str, Any]]]]:
    if processes == 1:
        for unit in units:
            yield unit, _run(unit)
        return
    # Not forked: torch's threads would be copied in whatever state they are.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        futures = {pool.submit(_run, unit): unit for unit in units}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise RagwitnessError(
                "A process that trained a policy was ended from outside, as for want of memory.",
                "Take fewer --processes; the same command goes on with the next policy.",
            ) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _run(unit: _Unit) -> list[dict[str, Any]]:
    one_thread(unit.case.world.device)
    world = _world(unit.case, unit.folders)
    trial, found = unit.case.trial, []
    stage = stage_trial(world, trial, unit.seed)
    for violating, _ in unit.keys:
        try:
            found.append(asdict(run_arm(stage, trial, unit.seed, violating=violating)))
        except ModelError as error:  # diverged: a result, and reported as one
            found.append(_diverged(unit.seed, violating, error.message))
    return found


@lru_cache(maxsize=2)
def _loaded(spec: str, folders: WorldFolders) -> Any:
    return make_world(json.loads(spec), folders)


def _world(case: StudyCase, folders: WorldFolders) -> Any:
    return _loaded(json.dumps(asdict(case.world), sort_keys=True), folders)


def _diverged(seed: int, violating: bool, why: str) -> dict[str, Any]:
    """No evidence whatever: p = 1; the zeros stand in no mean."""
    return {
        "seed": seed, "violating": violating, "p_own": 1.0, "p_gained": 1.0, "p_named": None,
        "amplification": 0.0, "base_amplification": 0.0, "kept": 0.0, "base_kept": 0.0,
        "gained": 0.0, "reward_bias": 0.0, "said": {}, "behaviour": {}, "before": {},
        "rewards": (0.0, 0.0), "kl": 0.0,
        "collapsed": f"diverged: {why}", "dropped": {}, "traces": (0, 0), "seconds": {},
    }  # fmt: skip


def trial_settings(trial: TrialConfig) -> dict[str, Any]:
    """Return a trial's fields; of design and curation those that they had in earlier journals."""
    curation = asdict(trial.curation)
    if not curation["mined"]:
        del curation["mined"]
    return asdict(trial) | {"design": settings_of(trial.design), "curation": curation}


def _key(case: StudyCase, seed: int, violating: bool, folders: WorldFolders) -> str:
    content = {  # where it is computed is no part of what is asked
        "base": base_contents(case.world, folders),
        "examples": case.world.examples,
        "trial": trial_settings(case.trial),
        "seed": seed,
        "violating": violating,
    }
    if case.trial.curation.mined:
        content["ordinary"] = folders.digest(case.world.ordinary)
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """Outcomes by key; what a kill cut short, or another version wrote, is run again."""
    found: dict[str, dict[str, Any]] = {}
    if not path.is_file():
        return found
    for line in path.read_bytes().splitlines():
        try:
            row = json.loads(line)
            _outcome(row["outcome"])
            found[row["key"]] = row["outcome"]
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _outcome(row: Mapping[str, Any]) -> Outcome:
    own = dict(row)
    return Outcome(**own | {"rewards": tuple(own["rewards"]), "traces": tuple(own["traces"])})


def _told(unit: _Unit, violating: bool, outcome: Mapping[str, Any]) -> str:
    arm = "violating" if violating else "compliant"
    state = f", collapsed: {outcome['collapsed']}" if outcome["collapsed"] else ""
    value, eq1 = outcome[unit.case.statistic], outcome["amplification"]
    seconds = sum(outcome["seconds"].values())
    return (
        f"{unit.case.label}: {arm} {unit.seed}, p = {value:.3f}, Eq. 1 {eq1:.3f}{state}"
        f" ({seconds:.0f} CPU-s)"
    )


# ``ragwitness lab reproduce`` for tables of the canary paper: policies are trained and audited.


def reproduce_study(
    table: StudyTable, data: Path | None, out: Path, policies: int | None, processes: int
) -> None:
    """Train what the table's journal does not hold, and write it beside what was published.

    Args:
        table: Conditions.
        data: Folder of the corpora.
        out: Folder of the results; resumes there. Base models are kept beside them.
        policies: Most in each arm; None takes the table's number.
        processes: Policies trained at once.

    Raises:
        InputError: A corpus is missing, or a setting is unusable.
        MissingExtraError: torch or transformers is not installed.
    """
    from ragwitness.cli.common import console

    if policies is not None:
        table = table.small(policies)
    folder = out / table.name
    screen = console()
    folders = WorldFolders(data, out / "bases")

    def say(told: str) -> None:
        screen.print(told, markup=False, soft_wrap=True)

    results = run_study(table, folders, folder, processes=processes, say=say)
    bases = {case.label: gate(case.world, folders) for case in table.cases}
    _write(table, results, folder, {name: one for name, one in bases.items() if one})


def _write(
    table: StudyTable,
    results: Sequence[tuple[StudyCase, Sequence[Outcome]]],
    folder: Path,
    bases: Mapping[str, Obedience],
) -> None:
    from research.canary.report import roc_svg, study_json, study_markdown, study_svg
    from research.reproduce.files import leave_table

    curves = roc_svg(table, results)
    if curves is not None:
        replace_file(folder / "roc.svg", curves)
    leave_table(
        folder,
        study_markdown(table, results, bases),
        study_json(table, results) | {"bases": {name: asdict(one) for name, one in bases.items()}},
        study_svg(table, results),
        ["roc.svg"] if curves is not None else [],
    )
