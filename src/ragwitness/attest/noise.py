"""Noise that is proved without being opened, in a window: what is committed, drawn and proved.

Before the window the provider commits, for every number that an answer can have, to secret integers
of all slots (in place of its sub-seed's hash). Public coins follow from the request. The noise is
read off the bits of their sum, and the proof of a challenged record opens none of it
(docs/design/noise.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import shake_256
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.crypto.hashing import tagged_hash
from ragwitness.crypto.proofs.argument import cut
from ragwitness.crypto.proofs.group import POINT_BYTES
from ragwitness.privacy.sampler import CoinNoise
from ragwitness.privacy.streams import NoiseRecord, canonical, hkdf_sha256, public_coins, sub_seed

if TYPE_CHECKING:
    from ragwitness.attest.policy import WindowPolicy
    from ragwitness.crypto.proofs.answers import Coins
    from ragwitness.crypto.proofs.prove_answers import SecretCoins
    from ragwitness.crypto.proofs.shape import Shape

_SLOT_SECONDS = 1e-5  # that committing takes (docs/design/link.md)
_NUMBERS = b"ragwitness/coin-numbers/v1\n"


def coins_of(policy: WindowPolicy) -> CoinNoise | None:
    """Return a policy's noise of coins, one for all its tenants; None where seeds are opened."""
    return next(iter(policy.tenants.values())).coins


def largest(policy: WindowPolicy) -> int:
    """Return the slots of a policy's largest index: numbers are committed before they have one."""
    return max(mechanism.capacity for mechanism in policy.tenants.values())


def secret_numbers(noise: CoinNoise, seed: bytes, slots: int) -> NDArray[np.uint32]:
    """Return an answer's secret integers, of its first slots, as limbs; the seed stays closed."""
    stream = shake_256(_NUMBERS + seed).digest(noise.stream_bytes(slots))
    return noise.secret(stream, slots)


def public_numbers(
    noise: CoinNoise, beacon: bytes, record: NoiseRecord, number: int, slots: int
) -> NDArray[np.uint32]:
    """Return an answer's public integers as limbs, by beacon, request and the answer's number."""
    size = noise.stream_bytes(slots)
    return noise.secret(public_coins(beacon, record, number, size), slots)


def drawn_noise(
    noise: CoinNoise, seed: bytes, beacon: bytes, record: NoiseRecord, number: int, slots: int
) -> NDArray[np.int64]:
    """Return the noise of all slots of an answer, as its provider draws it."""
    public = public_numbers(noise, beacon, record, number, slots)
    bits, _ = noise.tossed(secret_numbers(noise, seed, slots), public)
    return noise.noise(bits)


# What is committed before the window.


def commit_numbers(
    policy: WindowPolicy, seed: bytes, shape: Shape, progress: Callable[[str], None]
) -> bytes:
    """Return the commitments to the secret integers of every answer that a window may give."""
    found: list[bytes] = []
    minutes = policy.seed_count * largest(policy) * _SLOT_SECONDS / 60
    progress(f"noise of {policy.seed_count:,} answers, some {minutes:,.0f} minutes of one core")
    for number in range(policy.seed_count):
        secret = secret_coins(policy, sub_seed(seed, policy.window, number))
        found += secret.commit(shape)
    return b"".join(found)


def secret_coins(policy: WindowPolicy, seed: bytes) -> SecretCoins:
    """Return what opens an answer's commitment, from its sub-seed, over the largest index."""
    from ragwitness.crypto.proofs.prove_answers import SecretCoins

    noise = coins_of(policy)
    assert noise is not None  # noqa: S101  # only asked of windows whose noise is of coins
    numbers = whole_numbers(secret_numbers(noise, seed, largest(policy)))
    blinds = hkdf_sha256(seed, canonical({"domain": "ragwitness/coin-blinds/v1"}))
    return SecretCoins(numbers, blinds)


def whole_numbers(limbs: NDArray[np.uint32]) -> tuple[int, ...]:
    """Return integers out of limbs."""
    return tuple(int.from_bytes(row.tobytes(), "little") for row in limbs.astype("<u4"))


def coin_leaf(points: bytes) -> bytes:
    """Return what the tree over all answers holds in place of a sub-seed, 32 bytes."""
    return tagged_hash("ragwitness/coin-commitment/v1", points)


def split_points(data: bytes, count: int) -> Iterator[bytes]:
    """Return each answer's commitments out of those of all.

    Raises:
        InputError: They are not as many for each.
    """
    size, rest = divmod(len(data), count)
    if rest or not size or size % POINT_BYTES:
        raise InputError(
            "The file of the window's committed noise is damaged.", "Restore it from a backup."
        )
    return cut(data, size)


# What a challenged record proves.


def public_coins_of(
    noise: CoinNoise, points: bytes, limbs: NDArray[np.uint32], shape: Shape
) -> Coins:
    """Return what a record's proof says of its noise.

    The points are the number's; those of the record's index come first. The limbs are public.
    """
    from ragwitness.crypto.proofs.answers import Coins

    committed = tuple(cut(points, POINT_BYTES))[: shape.chunks(len(limbs))]
    return Coins(noise.coefficients, committed, whole_numbers(limbs))
