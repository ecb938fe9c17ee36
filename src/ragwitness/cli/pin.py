"""``ragwitness attest pin``: what a verifier accepts of a window, written into its trust file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragwitness.cli.options import AsJson
from ragwitness.cli.paths import PathRole
from ragwitness.errors import InputError

if TYPE_CHECKING:
    from ragwitness.attest.pins import PolicyBounds

_LONGEST = 1 << 20

Prompt = Annotated[
    str | None,
    PathRole.ADDRESS,
    typer.Option(
        help="The prompt template by which the generator sees the documents: its name or its"
        " .toml file. It is committed to with the embedder."
    ),
]


def pin(
    public: Annotated[
        Path, PathRole.READS, typer.Argument(help="The public folder of the window, or a copy.")
    ],
    trust: Annotated[
        Path,
        PathRole.KEEPS,
        typer.Option(help="Your own trust.json, into which your terms are written."),
    ],
    this: Annotated[
        bool,
        typer.Option("--policy", help="Accept this window's policy as it is, by its digest."),
    ] = False,
    epsilon_most: Annotated[
        float | None,
        typer.Option(help="The largest joint epsilon, of k_max accounts with all their queries."),
    ] = None,
    delta_most: Annotated[float | None, typer.Option(help="The largest delta* of it.")] = None,
    k_max_least: Annotated[int | None, typer.Option(help="The smallest k_max.")] = None,
    threshold_most: Annotated[
        float | None,
        typer.Option(help="The largest cosine from which two queries join their accounts."),
    ] = None,
    span_least: Annotated[
        int,
        typer.Option(help="The shortest span in which queries are compared.", show_default="all"),
    ] = 0,
    embedder: Annotated[
        str | None,
        PathRole.ADDRESS,
        typer.Option(help="The embedder that must have been committed to, from your own copy."),
    ] = None,
    prompt: Prompt = None,
    as_json: AsJson = False,
) -> None:
    """Say which policy you accept.

    It shows what the window's policy promises, and where that is weak. --policy accepts this one;
    the four bounds accept every policy that keeps them, of this window and of later ones. Without
    either nothing is written, and `ragwitness verify` gives no PASS: the provider wrote the policy.
    """
    from dataclasses import replace

    from ragwitness.attest.commitments import CommittedEmbedder
    from ragwitness.attest.pins import policy_terms, weak_points
    from ragwitness.attest.policy import MOST_BYTES, WindowPolicy
    from ragwitness.attest.trust import parse_trust
    from ragwitness.cli.attest import print_values
    from ragwitness.cli.attest_indexes import artifacts
    from ragwitness.kit.files import read_file, replace_file

    known = parse_trust(read_file(trust, _LONGEST))
    policy = WindowPolicy.parse(read_file(public / "policy.json", MOST_BYTES))
    bounds = _bounds(epsilon_most, delta_most, k_max_least, threshold_most, span_least)
    # What is given is added to what the file holds; nothing is taken out of it in silence.
    pins = known.pins
    if this:
        pins = replace(pins, policy=policy.digest)
    if bounds is not None:
        pins = replace(pins, bounds=bounds)
    if embedder is not None:
        own = CommittedEmbedder(artifacts(embedder, prompt), bytes(32))
        pins = replace(pins, embedder=own.digest)
    if pins != known.pins:
        replace_file(trust, replace(known, pins=pins).encode())
    values: dict[str, object] = {
        "window": policy.window,
        "policy": policy.digest,
        "promises": policy_terms(policy),
        "weak": weak_points(policy) or "nothing",
        "pinned": pins.plain() or "nothing: give --policy, or the bounds",
    }
    if pins.bounds is not None:
        values["breaks"] = [what for _, what in pins.bounds.broken(policy)] or "nothing"
    print_values(values, as_json=as_json)


def _bounds(
    epsilon: float | None,
    delta: float | None,
    k_max: int | None,
    threshold: float | None,
    span: int,
) -> PolicyBounds | None:
    from ragwitness.attest.pins import PolicyBounds

    if epsilon is None and delta is None and k_max is None and threshold is None and not span:
        return None
    if epsilon is None or delta is None or k_max is None or threshold is None:
        raise InputError(
            "Four bounds belong together; one alone leaves the others to the provider.",
            "Give --epsilon-most, --delta-most, --k-max-least and --threshold-most.",
        )
    return PolicyBounds(epsilon, delta, k_max, threshold, span)
