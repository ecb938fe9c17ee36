"""Rank-1 constraint systems: what a Groth16 circuit is, and how its witness is found.

A circuit is written once for a shape. Wire 0 is the constant one, then come the public inputs,
the private inputs, and what follows from them. A constraint is ⟨A, w⟩ · ⟨B, w⟩ = ⟨C, w⟩ modulo R.
While a circuit is written it keeps, in order, the steps that compute its wires; running them on
inputs is separate from writing it and takes a second where writing takes many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ragwitness.crypto.proofs.points import R, check_scalars
from ragwitness.errors import InputError

Wires: TypeAlias = list[int]
"""Values of all wires, each in [0, R)."""

_Step: TypeAlias = Callable[[Wires], None]


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """A linear combination of wires.

    Attributes:
        terms: Wire to coefficient in [1, R).
    """

    terms: Mapping[int, int]

    def __add__(self, other: Linear | int) -> Linear:
        return total([self, _linear(other)])

    def __sub__(self, other: Linear | int) -> Linear:
        return weighted([(1, self), (-1, _linear(other))])

    def __rsub__(self, other: int) -> Linear:
        return _linear(other) - self

    def __mul__(self, factor: int) -> Linear:
        return weighted([(factor, self)])

    __radd__ = __add__
    __rmul__ = __mul__


class Constraint(NamedTuple):
    """One row: a · b = c, and what it says, for messages."""

    a: Linear
    b: Linear
    c: Linear
    label: str


NOTHING = Linear({})
"""The combination that is always 0."""


def constant(value: int) -> Linear:
    """Return the combination that is always ``value``, modulo R."""
    return Linear({0: value % R} if value % R else {})


def weighted(pairs: Iterable[tuple[int, Linear]]) -> Linear:
    """Return Σ factor · combination."""
    terms: dict[int, int] = {}
    for factor, part in pairs:
        for wire, coefficient in part.terms.items():
            terms[wire] = (terms.get(wire, 0) + factor * coefficient) % R
    return Linear({wire: coefficient for wire, coefficient in terms.items() if coefficient})


def total(parts: Iterable[Linear]) -> Linear:
    """Return the sum."""
    return weighted((1, part) for part in parts)


def evaluate(combination: Linear, wires: Wires) -> int:
    """Return the value of a linear combination in [0, R)."""
    return sum(factor * wires[wire] for wire, factor in combination.terms.items()) % R


class Circuit:
    """A constraint system under construction, then what witnesses are computed with.

    Args:
        name: Name of the relation, with version, e.g. ``"ragwitness/link/v1"``.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.wires = 1
        self.publics = 0
        """Public inputs: wires 1 to ``publics``, in order of declaration."""
        self.inputs: dict[str, range] = {}
        """Name of an input to its wires."""
        self.constraints: list[Constraint] = []
        self._steps: list[_Step] = []

    def public(self, name: str, count: int = 1) -> list[Linear]:
        """Declare public inputs; all of them before anything else.

        Raises:
            ValueError: Something else was declared before.
        """
        if self.wires != self.publics + 1:
            raise ValueError("Public inputs are declared before everything else.")
        self.publics += count
        return self.private(name, count)

    def private(self, name: str, count: int = 1) -> list[Linear]:
        """Declare private inputs."""
        if name in self.inputs:
            raise ValueError(f"The input {name!r} is declared twice.")
        first = self.allocate(count)
        self.inputs[name] = range(first, first + count)
        return [Linear({wire: 1}) for wire in self.inputs[name]]

    def product(self, a: Linear, b: Linear, label: str) -> Linear:
        """Return a · b as a new wire: one constraint."""
        wire = self.allocate()

        def step(wires: Wires) -> None:
            wires[wire] = evaluate(a, wires) * evaluate(b, wires) % R

        self.compute(step)
        made = Linear({wire: 1})
        self.require(a, b, made, label, computed=True)
        return made

    def zero(self, combination: Linear, label: str) -> None:
        """Require that a combination is 0: one constraint."""
        self.require(NOTHING, NOTHING, combination, label)

    def require(self, a: Linear, b: Linear, c: Linear, label: str, computed: bool = False) -> None:
        """Require a · b = c.

        Args:
            a: First factor.
            b: Second factor.
            c: Their product.
            label: What it says, for the message where it fails.
            computed: The steps make it true, so that a witness need not be checked for it.
        """
        row = Constraint(a, b, c, label)
        self.constraints.append(row)
        if not computed:
            self._steps.append(lambda wires: _demand(row, wires))

    def allocate(self, count: int = 1) -> int:
        """Add wires that :meth:`compute` gives values, and return the first."""
        first = self.wires
        self.wires += count
        return first

    def compute(self, step: _Step) -> None:
        """Add a step that sets allocated wires from the ones before."""
        self._steps.append(step)

    def rows(self) -> Iterator[Constraint]:
        """Yield what a setup is made for: the constraints, then x · 0 = 0 for every public wire.

        A row of its own keeps an input's polynomials apart from all others; without it a proof
        could be moved to another value of an input that no other row reads. Other programs
        add these rows themselves, in this order.
        """
        yield from self.constraints
        for wire in range(self.publics + 1):
            yield Constraint(Linear({wire: 1}), NOTHING, NOTHING, "public input")

    def witness(self, inputs: Mapping[str, Sequence[int]]) -> Wires:
        """Return the values of all wires.

        Args:
            inputs: Every declared input by name, public ones too.

        Raises:
            InputError: An input is missing, unknown, too short or long, or outside the field; or a
                constraint fails, and the message names it.
        """
        # Wire 0 is one; then the inputs; then every step in the order in which it was written.
        wires = [0] * self.wires
        wires[0] = 1
        if inputs.keys() != self.inputs.keys():
            odd = sorted(inputs.keys() ^ self.inputs.keys())
            raise InputError(f"Inputs of {self.name} that are missing or unknown: {odd}.")
        for name, place in self.inputs.items():
            values = inputs[name]
            if len(values) != len(place):
                raise InputError(f"{name!r} has {len(place)} values, not {len(values)}.")
            wires[place.start : place.stop] = check_scalars(name, values)
        for step in self._steps:
            step(wires)
        return wires


def _linear(value: Linear | int) -> Linear:
    return value if isinstance(value, Linear) else constant(value)


def _demand(row: Constraint, wires: Wires) -> None:
    left = evaluate(row.a, wires) * evaluate(row.b, wires)
    if (left - evaluate(row.c, wires)) % R:
        raise InputError(
            f"The witness does not satisfy the circuit: {row.label}.",
            "Only a true statement can be proved.",
        )
