"""An index in parts: the single scan's answer byte for byte, or a named error."""

import gc
import hashlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sqlalchemy import text

from ragwitness.errors import InputError
from ragwitness.privacy.mechanism import release as releasing
from ragwitness.privacy.mechanism.config import Mechanism, mechanism_for
from ragwitness.privacy.mechanism.release import SlotIndex, quantise, release
from ragwitness.service import retrieval, shards
from ragwitness.service.indexes import Indexes
from ragwitness.service.retrieval import Retriever
from ragwitness.service.shards import ShardedIndex, ShardGoneError, Sharding, ShardPool
from tests.support.service import make_tenant

QUERIES = 12


def keys(count: int = QUERIES) -> list[bytes]:
    return [hashlib.sha256(str(at).encode()).digest() for at in range(count)]


@pytest.fixture(scope="module")
def pools() -> Iterator[Callable[[int], ShardPool]]:
    made: dict[int, ShardPool] = {}
    yield lambda count: made.setdefault(count, ShardPool(Sharding(count)))
    for pool in made.values():
        pool.close()


@pytest.fixture
def pool() -> Iterator[ShardPool]:
    made = ShardPool(Sharding(2))
    yield made
    made.close()


def index_of(pool: ShardPool, rows: np.ndarray, mechanism: Mechanism) -> ShardedIndex:
    """Slots in any order and several blocks, as a database gives them."""
    order = np.random.default_rng(1).permutation(len(rows))
    parts = np.array_split(order, 3)
    return pool.hold([(part, rows[part]) for part in parts if len(part)], mechanism)


def drawn(mechanism: Mechanism, count: int) -> np.ndarray:
    floats = np.random.default_rng(7).standard_normal((count, mechanism.dimension))
    return quantise(floats, mechanism)


def assert_same(sharded: ShardedIndex, rows: np.ndarray, mechanism: Mechanism) -> None:
    """Against the one scan that answers without shards, ids and noisy scores."""
    whole = SlotIndex(rows, mechanism)
    assert sharded.shape == whole.shape
    for query, key in zip(drawn(mechanism, QUERIES), keys(), strict=True):
        assert sharded.release(query, key) == release(query, whole, key, mechanism)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["table", "exact"])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_every_k_is_the_single_scans(pools, count: int, sampler: str) -> None:
    for top in range(1, 22):
        mechanism = mechanism_for(16, 21, top, 0.2, sampler=sampler)  # type: ignore[arg-type]
        rows = drawn(mechanism, 18)  # the last slots are free
        assert_same(index_of(pools(count), rows, mechanism), rows, mechanism)


def test_ties_within_and_across_parts_come_in_order_of_the_slots(pools) -> None:
    # Scores of three steps, noise of eight: noisy scores tie again and again.
    mechanism = Mechanism(8, 400, 60, 64, shift=23, low=-1, high=1)
    rows = np.repeat(drawn(mechanism, 4), 100, axis=0)
    found = release(rows[0], SlotIndex(rows, mechanism), keys(1)[0], mechanism)
    assert len(set(found.noisy)) < len(found.noisy) / 3
    for count in (2, 3, 7):
        assert_same(index_of(pools(count), rows, mechanism), rows, mechanism)


def test_parts_of_several_blocks_and_streams(pools, monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = mechanism_for(4, 70_001, 9, 0.3)  # above one block, no multiple of anything
    rows = drawn(mechanism, 70_001)
    for count in (1, 3):  # 1: the second block of a part; 3: parts that begin within a stream
        assert_same(index_of(pools(count), rows, mechanism), rows, mechanism)
    monkeypatch.setattr(releasing, "_BLOCK", 1000)
    query, key = drawn(mechanism, 1)[0], keys(1)[0]
    part = releasing.scan_part(query, rows.astype(np.float32), 0, key, mechanism)
    assert part == release(query, SlotIndex(rows, mechanism), key, mechanism)


def test_fewer_slots_than_shards_and_parts_without_a_document(pools) -> None:
    for capacity in (1, 3, 6):
        mechanism = mechanism_for(16, capacity, 1, 0.2)
        rows = drawn(mechanism, 1)  # every part but the first has free slots alone
        assert_same(index_of(pools(7), rows, mechanism), rows, mechanism)
    mechanism = mechanism_for(16, 40, 5, 0.2)
    nothing = pools(3).hold([], mechanism)
    assert_same(nothing, np.zeros((1, 16), np.int16), mechanism)


@pytest.mark.slow
def test_one_dead_shard_is_an_error_and_never_a_partial_answer(pool: ShardPool) -> None:
    mechanism = mechanism_for(16, 40, 5, 0.2)
    rows = drawn(mechanism, 40)
    index, other = index_of(pool, rows, mechanism), index_of(pool, rows, mechanism)
    index.release(rows[0], keys(1)[0])
    os.kill(pool.pids[1], signal.SIGKILL)
    with pytest.raises(ShardGoneError, match=r"Shard [12] of 2 gave no answer") as caught:
        index.release(rows[0], keys(1)[0])
    assert "started anew" in caught.value.hint
    # Nor is there one from those that were left, for this index or another of the pool.
    assert pool.pids == []
    for one in (index, other):
        assert one.lost
        with pytest.raises(ShardGoneError, match="have ended"):
            one.release(rows[0], keys(1)[0])
    assert_same(index_of(pool, rows, mechanism), rows, mechanism)
    with pytest.raises(ShardGoneError, match="have ended"):  # the new ones do not know it
        index.release(rows[0], keys(1)[0])


def test_a_shard_that_hangs_is_an_error(pool: ShardPool, monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = mechanism_for(16, 40, 5, 0.2)
    rows = drawn(mechanism, 40)
    index = index_of(pool, rows, mechanism)
    monkeypatch.setattr(shards, "_PATIENCE", 0.2)
    os.kill(pool.pids[0], signal.SIGSTOP)
    with pytest.raises(ShardGoneError, match=r"Shard 1 of 2 .*no answer in 0\.2 seconds"):
        index.release(rows[0], keys(1)[0])


def test_a_shard_that_fails_says_what_kind_of_failure_and_quotes_nothing(pool: ShardPool) -> None:
    mechanism = mechanism_for(16, 40, 5, 0.2)
    index = index_of(pool, drawn(mechanism, 40), mechanism)
    index.number += 1000
    with pytest.raises(ShardGoneError, match=r"gave no answer \(KeyError\)"):
        index.release(drawn(mechanism, 1)[0], keys(1)[0])


def test_shards_end_with_their_process_and_leave_no_file(pool: ShardPool, tmp_path, monkeypatch):
    monkeypatch.setattr(shards.tempfile, "tempdir", str(tmp_path))
    mechanism = mechanism_for(16, 40, 5, 0.2)
    rows = drawn(mechanism, 40)
    index = index_of(pool, rows, mechanism)
    assert list(tmp_path.iterdir()) == []  # and it answers: the file lives on without a name
    assert_same(index, rows, mechanism)
    seats = index.seats
    for seat in seats:
        seat._pipe.close()  # type: ignore[attr-defined]  # as the end of this process would
    assert [seat._child.wait(20) for seat in seats] == [0, 0]  # type: ignore[attr-defined]


@pytest.mark.slow
def test_an_index_that_nobody_holds_is_dropped_by_its_shards(pool: ShardPool) -> None:
    mechanism = mechanism_for(16, 40, 5, 0.2)
    rows = drawn(mechanism, 40)
    kept, gone = index_of(pool, rows, mechanism), index_of(pool, rows, mechanism)
    again = ShardedIndex(pool, gone.number, mechanism, gone.seats)
    again.release(rows[0], keys(1)[0])
    del gone
    gc.collect()
    assert_same(kept, rows, mechanism)
    with pytest.raises(ShardGoneError, match="KeyError"):
        again.release(rows[0], keys(1)[0])


def test_a_vector_that_is_too_long_is_refused_in_any_block(pool: ShardPool) -> None:
    mechanism = mechanism_for(16, 40, 5, 0.2)
    rows = drawn(mechanism, 4)
    rows[3] = 4096
    with pytest.raises(InputError, match="longer than 4096"):
        pool.hold([(np.arange(2), rows[:2]), (np.arange(2, 4), rows[2:])], mechanism)
    index = index_of(pool, drawn(mechanism, 4), mechanism)
    for query in (rows[3], np.zeros(15, np.int16), np.zeros(16)):
        with pytest.raises(InputError):
            index.release(query, keys(1)[0])


def test_a_full_disk_is_said_before_anything_is_mapped(pool: ShardPool, monkeypatch) -> None:
    monkeypatch.setattr(shards, "Path", lambda *_: Path("/dev/full"))
    with pytest.raises(InputError, match=r"no room for an index of 40 slots.*No space left"):
        pool.hold([], mechanism_for(16, 40, 5, 0.2))


@pytest.mark.parametrize("given", ["1", "16", "ray:3"])
def test_what_shards_may_be_called(given: str) -> None:
    found = Sharding.parse(given)
    assert (found.count, found.ray) == (int(given.removeprefix("ray:")), given.startswith("ray"))
    assert Sharding.parse("ray") == Sharding(os.cpu_count() or 1, True)


@pytest.mark.parametrize(
    "given", ["", "0", "257", "-1", "ray:", "ray:0", ":3", "ray3", "2.5", "dask"]
)
def test_what_they_may_not(given: str) -> None:
    with pytest.raises(InputError, match="shards"):
        Sharding.parse(given)


# In the service.


@pytest.mark.slow
def test_the_service_answers_the_same_with_shards_and_without(store, service) -> None:
    [key] = make_tenant(store, "t", 1)
    asked = [{"query": f"the code of door {at}", "nonce": str(at)} for at in range(6)]
    sharded = Retriever(store, clock=lambda: 0.0, shards=ShardPool(Sharding(3)))
    seen = []

    # The same records, of one seed and the same numbers: what was counted is forgotten in between.
    before = service.retriever
    for service.retriever in (before, sharded):
        with store.writing() as connection:
            connection.execute(text("DELETE FROM spent"))
        replies = [service.send("/v1/retrieval", body, key).json() for body in asked]
        assert [reply["sequence"] for reply in replies] == [*range(6)]
        seen.append([tuple(reply["ids"]) for reply in replies])
    assert seen[0] == seen[1]
    assert len(set(seen[0])) > 1
    sharded.close()
    service.retriever = before


@pytest.mark.slow
def test_a_shard_dead_before_the_charge_is_replaced_and_one_after_it_costs_503(
    store, service, monkeypatch: pytest.MonkeyPatch
) -> None:
    [key] = make_tenant(store, "t", 1)
    pool = ShardPool(Sharding(2))
    before, service.retriever = service.retriever, Retriever(store, clock=lambda: 0, shards=pool)

    def ask() -> tuple[int, dict]:
        reply = service.send("/v1/retrieval", {"query": "the code of door 3"}, key)
        return reply.status_code, reply.json()

    assert ask()[0] == 200
    os.kill(pool.pids[0], signal.SIGKILL)
    deadline = time.monotonic() + 20
    while next(iter(service.retriever._indexes._held.values()))[1].lost is False:
        assert time.monotonic() < deadline
    assert ask()[0] == 200  # started anew, before anything was charged
    honest = retrieval._key

    def dying(*given):
        os.kill(pool.pids[1], signal.SIGKILL)
        return honest(*given)

    monkeypatch.setattr(retrieval, "_key", dying)
    status, told = ask()
    assert status == 503
    assert "ids" not in told
    assert told["error"]["message"] == "The service cannot reach a part of its index."
    monkeypatch.setattr(retrieval, "_key", honest)
    status, told = ask()
    assert (status, told["sequence"]) == (200, 3)  # the one without an answer stays charged
    service.retriever.close()
    service.retriever = before


def test_an_index_is_read_by_the_thousand_and_zero_where_nothing_is(store, monkeypatch) -> None:
    from ragwitness.service import indexes

    make_tenant(store, "t", 1)
    whole = Indexes(store).get(1, 1, make(store)).rows
    monkeypatch.setattr(indexes, "_TOGETHER", 2)
    np.testing.assert_array_equal(Indexes(store).get(1, 1, make(store)).rows, whole)
    assert 0 < np.any(whole, axis=1).sum() < len(whole)


def make(store) -> Mechanism:
    from ragwitness.service.policy import TenantPolicy
    from ragwitness.service.tenants import find_tenant

    with store.reading() as connection:
        return TenantPolicy.from_json(find_tenant(connection, "t").policy).mechanism


# On Ray: the actor's own code, without Ray; benchmarks/shards.py --ray runs on a real cluster.


class FakeRay:
    """Actors in this process; ``dead`` ones fail as Ray says it."""

    class exceptions:  # noqa: N801
        class RayError(Exception):
            pass

        class RayActorError(RayError):
            pass

    def __init__(self) -> None:
        self.dead: set[int] = set()
        self.made = 0
        self.lost = False

    def remote(self, kind):
        def begin():
            if self.lost:
                raise self.exceptions.RayError("the cluster is gone")
            number, actor = self.made, kind()
            self.made += 1
            fields = {
                name: SimpleNamespace(
                    remote=lambda *given, name=name: (number, getattr(actor, name), given)
                )
                for name in ("hold_rows", "drop", "scan")
            }
            return SimpleNamespace(number=number, **fields)

        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=begin))

    def get(self, asked, timeout):
        number, call, given = asked
        if number in self.dead:
            raise self.exceptions.RayActorError
        return call(*given)

    def kill(self, actor) -> None:
        self.dead.add(actor.number)

    def init(self, **_) -> None: ...

    def shutdown(self) -> None: ...

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 3.0}


def test_actors_answer_as_the_single_scan_and_a_dead_one_is_an_error(monkeypatch) -> None:
    ray = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    mechanism = mechanism_for(16, 40, 5, 0.2)
    rows = drawn(mechanism, 33)
    pool = ShardPool(Sharding.parse("ray:3"))
    index = index_of(pool, rows, mechanism)
    assert_same(index, rows, mechanism)
    ray.dead.add(1)
    with pytest.raises(ShardGoneError, match=r"Shard 2 of 3 gave no answer \(RayActorError\)"):
        index.release(rows[0], keys(1)[0])
    assert index.lost
    assert_same(index_of(pool, rows, mechanism), rows, mechanism)
    ray.dead.add(ray.made - 1)
    with pytest.raises(ShardGoneError, match="Shard 3 of 3"):
        index_of(pool, rows, mechanism)  # it dies while it is sent its part
    ray.lost = True
    with pytest.raises(ShardGoneError, match=r"cannot be started.*the cluster is gone"):
        index_of(pool, rows, mechanism)
    assert pool._seats == []
    pool.close()
    with pytest.raises(InputError, match="4 workers need 4 CPUs"):
        ShardPool(Sharding.parse("ray:4"))
