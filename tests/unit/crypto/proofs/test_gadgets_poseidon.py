"""Poseidon against circomlib's published numbers and poseidon-lite 0.3.0's hashes of 1, 2, …, k."""

import numpy as np
import pytest

from ragwitness.crypto.proofs.gadgets import MAX_INPUTS, parameters, poseidon
from ragwitness.crypto.proofs.points import R
from ragwitness.errors import InputError

PUBLISHED = """
18586133768512220936620570745912940619677854269274689475585506675881198879027
7853200120776062878684798364095072458815029376092732009249414926327459813530
6542985608222806190361240322586112750744169038454362455181422643027100751666
18821383157269793795438455681495246036402687001665670618754263018637548127333
6183221330272524995739186171720101788151706631170188140075976616310159254464
20400040500897583745843009878988256314335038853985262692600694741116813247201
12748163991115452309045839028154629052133952896122405799815156419278439301912
18604317144381847857886385684060986177838410221561136253933256952257712543953
13589767895268936107593642967621470491511464502761040466226072462545218539640
3657500514307717306974218405144578736633140001277925127187636780142269815841
3572015662710076994097916907865950486270383304442561406230608893458731714472
2501997477381648492950318384533644783248002172679259592360114615426357826485
7041832639553862712666971417715061873827921493498355005117622707743491651590
8354478399926161176778659061636406690034081872658507739535256090879947077494
4203130618016961831408770638653325366880478848856764494148034853759773445968
9989051620750914585850546081941653841776809718687451684622678807385399211877
"""


@pytest.mark.parametrize(("count", "value"), list(enumerate(map(int, PUBLISHED.split()), 1)))
def test_published_hashes_of_every_width(count, value):
    assert poseidon(list(range(1, count + 1))) == value


def test_published_constants_of_width_3():
    known = parameters(3)
    assert (
        known.constants[0][0] == 0x0EE9A592BA9A9518D05986D656F40C2114C4993C11BB29938D21D47304CD8E6E
    )
    assert known.matrix[0][0] == 0x109B7F411BA0E4C9B2B70CAF5C36A7B194BE7C11AD24378BFEDB68592BA8118B
    assert len(known.constants) == 8 + 57


def test_long_lists_are_chained_with_their_length():
    lists = [[1] * count for count in range(14, 20)] + [[1] * 16 + [0] * count for count in (1, 2)]
    assert len({poseidon(values) for values in lists}) == len(lists)
    assert poseidon([1] * 40) != poseidon([1] * 39 + [2]) != poseidon([2] + [1] * 39)


def test_the_chain_is_the_documented_one():
    """Capacity: the length, then what the last permutation left; blocks of 16, zeros at the end."""
    known, values = parameters(MAX_INPUTS + 1), list(range(1, 19))
    capacity = len(values)
    for block in (values[:16], values[16:] + [0] * 14):
        state = np.array([capacity, *block], object)
        for number, constants in enumerate(known.constants):
            boxed = 17 if number < 4 or number >= 4 + 68 else 1
            state = (state + np.array(constants, object)) % R
            state[:boxed] = state[:boxed] ** 5
            state = np.array(known.matrix, object) @ state % R
        capacity = state[0]
    assert poseidon(values) == capacity


@pytest.mark.parametrize("values", [[], [-1], [R], [1, R + 1]])
def test_only_lists_of_scalars(values):
    with pytest.raises(InputError, match=r"at least one input|outside the field"):
        poseidon(values)
