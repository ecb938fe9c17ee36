"""Figs. 2 to 7 of the collusion paper, its adversaries and its goal G2, as tables.

``ragwitness lab reproduce collusion/fig2`` and the others of ``experiments/collusion``. The text of
the paper that we have lost most figures: "published" is what it prints, "rebuilt" what was
computed from its formulas (``PAPERS.md``).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import httpx2
import numpy as np
from numpy.typing import NDArray

from ragwitness.comparison.usefulness import rouge_l
from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.models.model_registry import load_embedder
from ragwitness.privacy.gaussian import auc_of, mu_of
from ragwitness.privacy.release import SlotIndex, quantise, scores
from ragwitness.service.app import create_app
from ragwitness.service.documents import add_documents
from ragwitness.service.policy import Claim
from ragwitness.service.store import open_store
from ragwitness.service.tables import documents
from ragwitness.service.tenants import add_account, create_tenant
from ragwitness.stats.rates import proportion_interval
from ragwitness.text.sample import load_sample
from research.adaptive import STRATEGIES, AdaptiveConfig, effective_accounts, hunt
from research.coalitions import Harness, null_curve, operating_point, recovery
from research.gates import judge
from research.reconstruction import expected_cosine, nearest, queries_for, solve
from research.regimes import (
    REGIMES,
    Deployment,
    even_queries,
    likelihood_ratio,
    planted_index,
    regime_hits,
)
from research.reproduce.files import leave_table
from research.reproduce.tables import read_table
from research.scalar import SweepConfig, sweep
from research.separation import area_of, noise_for
from research.top_hits import TopHits, hit_probability, transfer_factor

Values = NDArray[np.float64]
Row: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a figure shows, as a table.

    Attributes:
        head: Of the columns.
        rows: As many cells as the head has.
        said: What a reader must know of these figures.
    """

    head: Row
    rows: tuple[Row, ...]
    said: tuple[str, ...] = ()


def reproduce_figure(name: str, folder: Path, out: Path) -> Drawn:
    """Run a figure of the paper, print it as a table, and leave its files.

    Args:
        name: ``collusion/FIGURE``.
        folder: Holds ``collusion/tables.toml``.
        out: Where ``NAME/table.md`` and ``table.json`` go.

    Raises:
        InputError: There is no such table, or it is malformed.
    """
    data = read_table(name, folder)
    own = {
        key: value for key, value in data.items() if key not in ("kind", "title", "draw", "note")
    }
    try:
        drawn = _DRAW[data["draw"]](**own)
    except (KeyError, TypeError) as error:
        raise InputError(f"The table {name!r} is malformed: {error}.") from error
    lines = [f"# {data['title']}", "", _line(drawn.head), "|" + "---|" * len(drawn.head)]
    lines += [*map(_line, drawn.rows), "", *(f"- {said}" for said in (*drawn.said, *data["note"]))]
    settings = ", ".join(f"{key} = {value}" for key, value in own.items())
    lines += ["", f"Settings: {settings}.", f"Again: `ragwitness lab reproduce {name}`."]
    told = {"name": name, "settings": own, "head": drawn.head, "rows": drawn.rows}
    leave_table(out / name, "\n".join(lines) + "\n", told)
    return drawn


def _line(cells: Row) -> str:
    return "| " + " | ".join(cells) + " |"


def _f(value: float, places: int = 4) -> str:
    return f"{value:.{places}f}"


def _share(hits: int, n: int) -> str:
    low, high = proportion_interval(hits, n)
    return f"{hits} of {n} [{low:.3f}, {high:.3f}]"


# Fig. 2(a), section 4.2, and Fig. 3, section 4.5: one score, k accounts.


def _scalar(
    epsilons: Sequence[float],
    accounts: Sequence[int],
    queries: int,
    delta: float,
    gap: float,
    trials: int,
    seed: int,
    rebuilt: Mapping[str, float],
) -> Drawn:
    config = SweepConfig(tuple(accounts), tuple(map(float, epsilons)), queries, delta, gap,
                         trials=trials, seed=seed)  # fmt: skip
    cells = sweep(config)
    rows = []
    for cell in cells:
        area = f"{cell.area.value:.4f} [{cell.area.low:.4f}, {cell.area.high:.4f}]"
        rows.append((f"{cell.epsilon:g}", f"{cell.accounts}",
                     _rebuilt(rebuilt, f"{cell.epsilon:g} x {cell.accounts}"),
                     _f(cell.predicted), area, f"{cell.z:+.2f}"))  # fmt: skip
    said = f"{trials:,} paired trials in each cell; z counts standard errors from the theory."
    gates = tuple(f"{gate.name}: {gate.state}: {gate.why}" for gate in judge(config, cells).gates)
    head = ("epsilon", "k", "rebuilt", "theory", "ours [95 %]", "z")
    return Drawn(head, tuple(rows), (said, *gates))


def _embedder(
    epsilon: float,
    accounts: Sequence[int],
    queries: int,
    delta: float,
    wanted_gap: float,
    dimension: int,
    trials: int,
    seed: int,
) -> Drawn:
    """A pair of real texts with the gap nearest to the wanted one, its own vector as probe."""
    vectors = hashed_words([document.text for document in load_sample()], dimension)
    gaps = 1 - vectors @ vectors.T
    off = np.abs(gaps - wanted_gap) + 9.0 * np.eye(len(gaps))
    target, decoy = np.unravel_index(int(off.argmin()), off.shape)
    gap = float(gaps[target, decoy])
    ours, unit = (
        sweep(SweepConfig(tuple(accounts), (epsilon,), queries, delta, size, trials=trials,
                          seed=seed))
        for size in (gap, 1.0)
    )  # fmt: skip
    rows = [
        (f"{a.accounts}", f"{a.area.value:.4f} [{a.area.low:.4f}, {a.area.high:.4f}]",
         _f(a.predicted), _f(b.area.value), _f((a.area.value - 0.5) / (b.area.value - 0.5), 3))
        for a, b in zip(ours, unit, strict=True)
    ]  # fmt: skip
    said = f"Texts {target} and {decoy} of the package's {len(gaps)}, gap {gap:.3f}; the ratio of"
    said += " the excesses should be near it while they are small."
    head = ("k", "this pair [95 %]", "theory", "gap 1", "excess, ratio")
    return Drawn(head, tuple(rows), (said,))


# Fig. 2(b), section 4.4: the same where only the ids of the top K are seen.


def _top_k(
    epsilon: float,
    accounts: Sequence[int],
    queries: int,
    delta: float,
    slots: int,
    top: int,
    dimension: int,
    seed: int,
) -> Drawn:
    sigma = noise_for("classic", epsilon, delta, queries)
    hits = _planted_hits(slots, dimension, sigma, top, seed)
    eta = transfer_factor(top, slots)
    rows = [
        (f"{k}", _f(auc_of(mu_of(sigma, k * queries))), _f(hits.area(k * queries)),
         _f(auc_of(eta * mu_of(sigma, k * queries))))
        for k in accounts
    ]  # fmt: skip
    said = f"sigma {sigma:.1f}; a hit has probability {hits.present:.5f} with the document and"
    said += f" {hits.absent:.5f} without it. Exact, given the index; no trials."
    head = ("k", "the score itself", "hit or no hit", f"by eta ({eta:.3f})")
    return Drawn(head, tuple(rows), (said,))


def _planted_hits(slots: int, dimension: int, sigma: float, top: int, seed: int) -> TopHits:
    probe, index, decoy = planted_index(np.random.default_rng(seed), slots, dimension)
    others = index[1:] @ probe
    return TopHits(
        hit_probability(1.0, others, sigma, top),
        hit_probability(float(decoy @ probe), others, sigma, top),
    )


def _service(
    epsilon: float,
    accounts: Sequence[int],
    queries: int,
    delta: float,
    slots: int,
    top: int,
    dimension: int,
    seed: int,
) -> Drawn:
    """The same through the service: keys, meters, HTTP, the committed noise."""
    texts = [document.text for document in load_sample()]
    chosen = np.random.default_rng(seed).permutation(len(texts))[: slots + 1]
    target, decoy, *others = (texts[at] for at in chosen)
    most = max(accounts)
    # One account more is declared than asks: the index's own meter rounds against the last query.
    claim = Claim(
        mechanism="noise", epsilon=epsilon, delta=delta, queries=queries, accounts=most + 1,
        top=top, capacity=slots, embedder=f"hashing:{dimension}",
    )  # fmt: skip
    with TemporaryDirectory() as folder:
        present, absent = (
            asyncio.run(_asked(Path(folder) / name, claim, first, others, target))
            for name, first in (("present", target), ("absent", decoy))
        )
    rows = []
    for k in accounts:
        n = k * queries
        counts = [int(world.hits[:k].sum()) for world in (present, absent)]
        exact = TopHits(present.expected, absent.expected)
        rows.append((f"{k}", *(_share(count, n) for count in counts), _f(exact.present),
                     _f(exact.absent), _f(exact.area(n))))  # fmt: skip
    said = f"sigma {present.sigma:.2f} (the service's own, for sensitivity 2). Each run has"
    said += " noise of its own. The AUC is that of the number of hits, by the exact probabilities."
    head = ("k", "hits with the document [95 %]", "without it", "exact, with", "exact, without",
            "AUC exact")  # fmt: skip
    return Drawn(head, tuple(rows), (said,))


@dataclass(frozen=True, slots=True, eq=False)
class _World:
    hits: NDArray[np.int64]  # by account
    expected: float
    sigma: float


async def _asked(
    database: Path, claim: Claim, first: str, others: Sequence[str], query: str
) -> _World:
    """Serve an index, let every account ask the same until its limit, and count hits of a slot."""
    store = open_store(str(database), create=True)
    policy = create_tenant(store, "t", claim)
    named = [Document(f"d{at}", text) for at, text in enumerate((first, *others))]
    add_documents(store, "t", named[: claim.capacity])
    with store.reading() as connection:
        found = {row.name: row.slot for row in connection.execute(documents.select())}
    keys = [add_account(store, "t", f"a{at}") for at in range(claim.accounts - 1)]
    hits = np.zeros(len(keys), np.int64)
    transport = httpx2.ASGITransport(app=create_app(store))
    async with httpx2.AsyncClient(transport=transport, base_url="http://service") as client:
        for at, key in enumerate(keys):
            for _ in range(claim.queries):
                reply = await client.post(
                    "/v1/retrieval",
                    json={"query": query},
                    headers={"Authorization": f"Bearer {key}"},
                )
                hits[at] += found["d0"] in reply.raise_for_status().json()["ids"]
    # What the mechanism gives, from its own integers.
    store.close()
    mechanism = policy.mechanism
    embedder = load_embedder(claim.embedder)
    filled = np.zeros((mechanism.capacity, mechanism.dimension), np.int16)
    for document in named[: claim.capacity]:
        filled[found[document.id]] = quantise(embedder.embed([document.text])[0], mechanism)
    asked = quantise(embedder.embed([query]), mechanism)
    levels = scores(asked, SlotIndex(filled, mechanism), mechanism)[0].astype(np.float64)
    sigma = math.sqrt(mechanism.variance)
    own = found["d0"]
    expected = hit_probability(float(levels[own]), np.delete(levels, own), sigma, mechanism.top)
    return _World(hits, expected, sigma / (mechanism.scale**2 >> mechanism.shift))


# Fig. 4, section 4.6: adversary B (likelihood ratio) and adversary C (split).


def _adversaries(
    epsilon: float,
    accounts: Sequence[int],
    queries: int,
    delta: float,
    shares: Sequence[float],
    trials: int,
    seed: int,
    rebuilt: Mapping[str, Sequence[float]],
) -> Drawn:
    sigma = noise_for("classic", epsilon, delta, queries)
    rows = []
    for at, k in enumerate(accounts):
        rng = np.random.default_rng((seed, at))
        # One mean for each account, normal with sigma / sqrt(q): sufficient for it.
        spread = sigma / math.sqrt(queries)
        noise = spread * rng.standard_normal((2, trials, k))
        gaps = np.ones(k)
        world = (noise[0] + gaps, noise[1])
        mean = area_of(*(w.mean(axis=1) for w in world)).value
        ratio = area_of(*(likelihood_ratio(w, gaps, 0 * gaps, spread) for w in world)).value
        theory = _f(auc_of(mu_of(sigma, k * queries)))
        rows.append((f"{k}", "mean (baseline)", "-", theory, _f(mean)))
        rows.append((f"{k}", "B: likelihood ratio", "-", theory, _f(ratio)))
        for share in shares:
            aimed = round(share * k)
            if not 0 < aimed < k or aimed != share * k:
                continue
            split = (np.arange(k) < aimed).astype(np.float64)
            world = (noise[0] + split, noise[1])
            pooled = area_of(*(w.mean(axis=1) for w in world)).value
            known = area_of(*(w[:, :aimed].mean(axis=1) for w in world)).value
            for pooling, name, found, place in (
                ("everything", "pools everything", pooled, 0),
                ("on-target", "pools what is on target", known, 1),
            ):
                size = effective_accounts(k, aimed, pooling)  # type: ignore[arg-type]
                printed = rebuilt.get(f"{share:g}", ())
                shown = _f(printed[place]) if k == 16 and printed else "-"
                rows.append((f"{k}", f"C: {share:g} on target, {name}", shown,
                             _f(auc_of(math.sqrt(size * queries) / sigma)), _f(found)))  # fmt: skip
    said = f"{trials:,} paired trials; standard error of an AUC at most"
    said += f" {math.sqrt(1 / (6 * trials)):.4f}. B orders trials as the mean does."
    return Drawn(("k", "adversary", "rebuilt", "theory", "ours"), tuple(rows), (said,))


# Fig. 5, section 4.7: the regimes, with access control and where it has failed (M4).


def _regimes(
    epsilons: Sequence[float],
    accounts: Sequence[int],
    queries: int,
    delta: float,
    slots: int,
    top: int,
    dimension: int,
    seed: int,
) -> Drawn:
    rng = np.random.default_rng(seed)
    _, mine, decoy = planted_index(rng, slots, dimension)
    indices = {"victim": mine, "other": planted_index(rng, slots, dimension)[1]}
    rows = []
    for epsilon in epsilons:
        sigma = noise_for("classic", epsilon, delta, queries)
        found = {
            (shared, regime): regime_hits(
                Deployment(indices, "victim", shared), regime, decoy, sigma, top
            )
            for shared in (False, True)
            for regime in REGIMES
        }
        for k in accounts:
            cells = tuple(
                "refused" if hits is None else _f(hits.area(k * queries)) for hits in found.values()
            )
            rows.append((f"{epsilon:g}", f"{k}", *cells))
    head = ("epsilon", "k", *REGIMES, *(f"{regime}, M4" for regime in REGIMES))
    said = "Exact, given the indexes. Under M4 routing makes all three the same computation; the"
    said += " paper draws the noise twice and finds no difference."
    return Drawn(head, tuple(rows), (said,))


# Fig. 6, section 4.8: an approximate index.


def _hnsw(
    epsilon: float,
    accounts: Sequence[int],
    queries: int,
    delta: float,
    slots: int,
    top: int,
    dimension: int,
    links: int,
    effort: int,
    seed: int,
) -> Drawn:
    sigma = noise_for("classic", epsilon, delta, queries)
    probe, index, decoy = planted_index(np.random.default_rng(seed), slots, dimension)
    without = index.copy()
    without[0] = decoy
    flat = _planted_hits(slots, dimension, sigma, top, seed)
    graph = None
    try:
        graph = TopHits(
            *(_graph_hit(world, probe, sigma, top, links, effort) for world in (index, without))
        )
        said = f"HNSW hits with probability {graph.present:.2e} against {graph.absent:.2e}."
    except ImportError:
        said = "The column of HNSW needs faiss: pip install faiss-cpu."
    eta = transfer_factor(top, slots)
    rows = tuple(
        (f"{k}", _f(auc_of(mu)), _f(flat.area(k * queries)), _f(auc_of(eta * mu)),
         "-" if graph is None else _f(graph.area(k * queries)))
        for k in accounts
        for mu in [mu_of(sigma, k * queries)]
    )  # fmt: skip
    head = ("k", "auditor: pooled scores", "user: hits, every slot noised", f"by eta ({eta:.4f})",
            "user: hits, HNSW before the noise")  # fmt: skip
    return Drawn(head, rows, (f"sigma {sigma:.1f}. {said}",))


def _graph_hit(
    index: Values, probe: Values, sigma: float, top: int, links: int, effort: int
) -> float:
    import faiss

    faiss.omp_set_num_threads(1)
    graph = faiss.IndexHNSWFlat(index.shape[1], links, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = graph.hnsw.efSearch = effort
    graph.add(index.astype(np.float32))
    found = graph.search(probe[None].astype(np.float32), effort)[1][0]
    candidates = found[found >= 0]
    if 0 not in candidates:
        return 0.0
    others = index[candidates[candidates != 0]] @ probe
    return hit_probability(float(index[0] @ probe), others, sigma, top)


# Fig. 7, section 5.5: calibration of the estimator of coalitions.


def _calibration(
    trials: int,
    sizes: Sequence[int],
    level: float,
    rebuilt: Mapping[str, float],
) -> Drawn:
    harness = Harness(trials=trials)
    points = null_curve(harness)
    threshold = operating_point(points, level)
    rows = [
        (f"null, tau = {point.threshold:g}", _rebuilt(rebuilt, f"{point.threshold:g}"),
         _share(round(point.joined.value * trials), trials), f"{point.largest:.1f}")
        for point in points
    ]  # fmt: skip
    for pattern in ("identical", "jittered", "paraphrased"):
        for size in sizes:
            found = recovery(harness, pattern, size, threshold)
            rows.append((f"{pattern}, m = {size}, tau = {threshold:g}", "all",
                         _share(round(found.exact.value * trials), trials),
                         f"{found.mean:.2f}"))  # fmt: skip
    head = ("accounts", "published or rebuilt", "logs joined, or counted exactly",
            "size estimated, mean")  # fmt: skip
    return Drawn(head, tuple(rows), (f"Operating point {threshold:g}, at a rate of {level:g}.",))


def _rebuilt(known: Mapping[str, float], key: str) -> str:
    return f"{known[key]:g}" if key in known else "-"


# Section 4.9: colluder j asks what the answers to colluders before it suggest.


def _adaptive(
    epsilon: float,
    accounts: Sequence[int],
    queries: int,
    delta: float,
    candidates: Sequence[int],
    trials: int,
    seed: int,
) -> Drawn:
    sigma = noise_for("classic", epsilon, delta, queries)
    rows = []
    for count in candidates:
        for k in accounts:
            for strategy in STRATEGIES:
                config = AdaptiveConfig(count, k, queries, sigma, trials=trials, seed=seed)
                if strategy == "halving" and k < config.rounds:
                    continue
                found = hunt(config, strategy)
                rows.append((f"{count}", f"{k}", strategy,
                             f"{found.area.value:.4f} [{found.area.low:.4f},"
                             f" {found.area.high:.4f}]", _f(found.most),
                             _f(found.on_target, 3)))  # fmt: skip
    head = ("candidates", "k", "strategy", "AUC [95 %]", "AUC of who knows the target",
            "queries on target")  # fmt: skip
    return Drawn(head, tuple(rows), (f"{trials:,} paired worlds in each cell.",))


# Goal G2, section 2.4: a text within ROUGE-L of a document, from noisy scores of its slot.


def hashed_words(texts: Sequence[str], dimension: int) -> Values:
    """Return unit vectors of words counted in ``dimension`` buckets with signs."""
    from sklearn.feature_extraction.text import HashingVectorizer

    found = HashingVectorizer(n_features=dimension).transform(texts)
    return np.asarray(found.todense(), np.float64)


def _reconstruction(
    dimension: int,
    sigmas: Sequence[float],
    bases: Sequence[int],
    close: float,
    documents: int,
    seed: int,
) -> Drawn:
    texts = [document.text for document in load_sample()]
    rng = np.random.default_rng(seed)
    texts = [texts[at] for at in rng.permutation(len(texts))]
    secrets, public = texts[:documents], texts[documents:]
    if len(public) < documents:
        raise InputError(f"{documents} of {len(texts)} texts leave too few public ones.")
    vectors, others = hashed_words(texts, dimension), hashed_words(public, dimension)
    rows = []
    for sigma in sigmas:
        for base in bases:
            count = base * dimension
            queries = even_queries(rng, count, dimension)
            truth = queries @ vectors[:documents].T
            found = solve(queries, truth + sigma * rng.standard_normal(truth.shape), sigma)
            held = [texts[at] for at in nearest(found, vectors)]
            unheld = [public[at] for at in nearest(found, others)]
            rates = [
                sum(rouge_l(guess, [secret]) >= close for guess, secret in
                    zip(guesses, secrets, strict=True))
                for guesses in (held, unheld)
            ]  # fmt: skip
            cosine = (found * vectors[:documents].T).sum(axis=0) / np.linalg.norm(found, axis=0)
            rows.append((f"{sigma:g}", f"{count:,}", _f(float(cosine.mean()), 3),
                         _f(expected_cosine(count, dimension, sigma), 3),
                         *(_share(rate, documents) for rate in rates),
                         f"{queries_for(0.9, dimension, sigma):,}"))  # fmt: skip
    head = ("sigma", "queries about the slot", "cosine", "theory",
            f"ROUGE-L of {close:g}: text among {len(texts)} held", "among others only",
            "queries for a cosine of .9")  # fmt: skip
    said = f"{documents} documents of the package's sample, hashed words, {dimension} dimensions."
    return Drawn(head, tuple(rows), (said,))


_DRAW: dict[str, Callable[..., Drawn]] = {
    "scalar": _scalar,
    "embedder": _embedder,
    "top-k": _top_k,
    "service": _service,
    "adversaries": _adversaries,
    "regimes": _regimes,
    "hnsw": _hnsw,
    "calibration": _calibration,
    "adaptive": _adaptive,
    "reconstruction": _reconstruction,
}
"""What draws a figure, by the word that its table gives; the arguments are the table's fields."""
