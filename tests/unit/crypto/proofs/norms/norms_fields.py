"""An independent, slow norm prover's field part: any matrix modulo R, by the definitions."""

from dataclasses import dataclass

from ragwitness.crypto.proofs.points import R


@dataclass(frozen=True)
class FieldMatrix:
    """Stands in for ``polynomials.Matrix``; entries of ``table`` (D, d) are any residues."""

    table: tuple[tuple[int, ...], ...]
    slots: int

    @property
    def rows(self):
        return self.table[: self.slots]

    def norms(self):
        return [sum(x * x for x in row) % R for row in self.table]

    def at(self, point):
        return [self._value(column, point) for column in zip(*self.table, strict=True)]

    def weighted(self, weights):
        return [sum(w * x for w, x in zip(weights, row, strict=True)) % R for row in self.table]

    def image(self, projections):
        """b^T V a for every pair, modulo R."""
        return [
            sum(int(b[j]) * sum(int(a[c]) * x for c, x in enumerate(row)) for j, row in self._top())
            % R
            for a, b in zip(projections.columns, projections.rows, strict=True)
        ]

    def coefficients(self, projections, challenges):
        """F by multiplying out its definition."""
        count = len(self.table)
        total = [0] * (2 * count - 1)
        for c, column in enumerate(zip(*self.table, strict=True)):
            left = [pow(challenges.xi, j, R) * x for j, x in enumerate(column)]
            for i, (a, b) in enumerate(zip(projections.columns, projections.rows, strict=True)):
                weight = challenges.kappa * pow(challenges.zeta, i, R) * int(a[c]) % R
                for j in range(self.slots):
                    left[j] += weight * int(b[j])
            for j, x in enumerate(left):
                for k, y in enumerate(column):
                    total[count - 1 + j - k] += x * y
        return [value % R for value in total]

    def _top(self):
        return enumerate(self.table[: self.slots])

    @staticmethod
    def _value(coefficients, point):
        return sum(x * pow(point, i, R) for i, x in enumerate(coefficients)) % R


def value(coefficients, point):
    return FieldMatrix._value(coefficients, point)


def constant(matrix, image, challenges):
    """The sum that F's constant term has to be, norms and projections as given."""
    squares = sum(x * pow(challenges.xi, j, R) for j, x in enumerate(matrix))
    crossed = sum(x * pow(challenges.zeta, i, R) for i, x in enumerate(image))
    return (squares + challenges.kappa * crossed) % R


def rank(table):
    """Rank of a matrix modulo R."""
    table = [[x % R for x in row] for row in table]
    found = 0
    for column in range(len(table[0])):
        pivot = next((i for i in range(found, len(table)) if table[i][column]), None)
        if pivot is None:
            continue
        table[found], table[pivot] = table[pivot], table[found]
        inverse = pow(table[found][column], -1, R)
        table[found] = [x * inverse % R for x in table[found]]
        for i, row in enumerate(table):
            if i != found and row[column]:
                table[i] = [
                    (x - row[column] * y) % R for x, y in zip(row, table[found], strict=True)
                ]
        found += 1
    return found
