"""py_ecc's BLS12-381 as an oracle, with the interpreter's recursion limit as it was.

Importing py_ecc raises that limit for good, and deep JSON then overruns the stack of whatever test
of the same process comes next.
"""

from __future__ import annotations

import sys

_LIMIT = sys.getrecursionlimit()
from py_ecc.bls.point_compression import compress_G1, decompress_G1
from py_ecc.optimized_bls12_381 import G1, add, curve_order, multiply, normalize

sys.setrecursionlimit(_LIMIT)

__all__ = ["G1", "add", "compress_G1", "curve_order", "decompress_G1", "multiply", "normalize"]
