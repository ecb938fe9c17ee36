"""Figures of curves, and the report of a coalition that draws with them."""

import json
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from ragwitness.collusion.coalition_result import RESULT_TYPE, CoalitionEstimates
from ragwitness.report.document import Axis, Curves, Line
from ragwitness.report.document import LinesPanel as Panel
from ragwitness.report.html import lines_svg

_SVG = "{http://www.w3.org/2000/svg}"


def _drawn(svg: str) -> ET.Element:
    root = ET.fromstring(svg)  # noqa: S314
    assert root.tag == f"{_SVG}svg"
    return root


def _stored(result: CoalitionEstimates) -> dict[str, Any]:
    """The JSON of a result, which is read back equal."""
    stored: dict[str, Any] = json.loads(json.dumps(RESULT_TYPE.stored(result), allow_nan=False))
    assert RESULT_TYPE.opened(stored) == result
    return stored


def _svg(result: CoalitionEstimates) -> str:
    [curves] = [
        one for one in RESULT_TYPE.report(result).sections[0].blocks if isinstance(one, Curves)
    ]
    return lines_svg(curves.title, curves.make())


def test_points_stand_where_their_values_are() -> None:
    panel = Panel(
        "t", Axis("x", (1.0, 10.0, 100.0), log=True), Axis("y"),
        (Line("dots", ((1.0, 0.0), (10.0, 0.5, 0.4, 0.6), (100.0, 1.0)), marks=True),),
    )  # fmt: skip
    dots = _drawn(lines_svg("a < b", [panel])).findall(f".//{_SVG}g/{_SVG}circle")[:3]
    x, y = ([float(dot.attrib[name]) for dot in dots] for name in ("cx", "cy"))
    assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.11)  # decades are alike
    assert y[0] - y[1] == pytest.approx(y[1] - y[2], abs=0.11)
    assert y[0] > y[2]  # upwards is more


def test_flat_single_and_empty_curves_are_drawn() -> None:
    lines = (Line("one", ((2.0, 3.0),)), Line("none", ()))
    root = _drawn(lines_svg("t", [Panel("p", Axis("x", log=True), Axis("y"), lines)]))
    assert "nan" not in ET.tostring(root, encoding="unicode")
    assert [text.text for text in root.iter(f"{_SVG}text")][-2:] == ["one", "none"]
