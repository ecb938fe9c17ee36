"""Other packages' targets, audits and defenses: found by name, broken ones in nobody's way."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from ragwitness.cli.doctor import admitted
from ragwitness.core.errors import InputError
from ragwitness.core.registry import Listing, Registry
from ragwitness.core.types import Answer, Capability, Query, Target
from ragwitness.membership.method_registry import AUDITS, build_audit, configure
from ragwitness.rag.defenses.defense_registry import load_defense
from ragwitness.targets.resolve import open_target, target_schemes
from ragwitness.targets.transport import Address
from tests.support.packages import install

_SECRET = "hunter2-hunter2-hunter2"

_GOOD = """
from dataclasses import dataclass
from ragwitness.rag.defenses.base import Defense
from ragwitness.core.types import Answer
from ragwitness.core.types import Capability
from ragwitness.core.types import Query
from ragwitness.core.types import Score

class Parrot:
    name = "parrot"
    capabilities = frozenset({Capability.TEXT})
    def __init__(self, says): self.says = says
    async def ask(self, query): return Answer(self.says)
    async def close(self): pass

async def open_parrot(address):
    path, options = address.split(("again",))
    return Parrot(path * int(options.get("again", 1)))

def open_function(address):
    return lambda prompt: prompt.upper()

@dataclass(frozen=True)
class LengthConfig:
    words: int = 3

class Length:
    name = "length"
    requires = frozenset({Capability.TEXT})
    def __init__(self, proxy, config): self.config = config
    def probe(self, document):
        answers = yield [Query(document.text)]
        return Score(float(len(answers[0].text)))

@dataclass(frozen=True)
class FragileConfig:
    pass

class Fragile(Length):
    def __init__(self, proxy, config): raise OSError("no model")

class Moat(Defense):
    def __init__(self, option, model): self.option = option
    @property
    def name(self): return f"moat({self.option})"

def not_a_defense(option, model): return option
def failing(option, model): raise RuntimeError("no water")
"""


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(
        monkeypatch,
        tmp_path / "good",
        "rw_good",
        _GOOD,
        targets={"parrot": "rw_good:open_parrot", "upper": "rw_good:open_function",
                 "http": "rw_good:open_function"},
        audits={"length": "rw_good:Length", "fragile": "rw_good:Fragile",
                "nothing": "rw_good:Moat"},
        defenses={"moat": "rw_good:Moat", "odd": "rw_good:not_a_defense",
                  "dry": "rw_good:failing"},
    )  # fmt: skip
    install(
        monkeypatch,
        tmp_path / "bad",
        "rw_bad",
        f"raise RuntimeError('no licence for {_SECRET}')",
        targets={"broken": "rw_bad:open"},
        audits={"broken-audit": "rw_bad:Audit"},
        defenses={"broken-defense": "rw_bad:defend"},
    )
    monkeypatch.setenv("RW_BAD_TOKEN", _SECRET)


def opened(spec: str) -> Target:
    return asyncio.run(open_target(spec))


def said(spec: str) -> str:
    async def main() -> str:
        target = await open_target(spec)
        return (await target.ask(Query("hi"))).text

    return asyncio.run(main())


@pytest.mark.usefixtures("packages")
def test_a_target_of_another_package_is_found_by_its_scheme() -> None:
    assert said("parrot/polly") == "polly"
    assert said("parrot:polly?again=2") == "pollypolly"
    assert said("upper/anything") == "HI"
    assert opened("upper/anything").name == "upper/anything"
    one, two = opened("upper/x?token=1").name, opened("upper/x?token=2").name
    assert one != two
    assert "token" not in one
    with pytest.raises(InputError, match="Unknown parrot option 'loud'"):
        opened("parrot/polly?loud=1")


@pytest.mark.usefixtures("packages")
def test_our_own_schemes_cannot_be_taken_over() -> None:
    with pytest.raises(InputError, match=r"no/such\.toml cannot be read"):
        opened("http/no/such.toml")


@pytest.mark.usefixtures("packages")
def test_a_broken_plugin_is_named_and_stands_in_nobodys_way() -> None:
    for load in (
        lambda: opened("broken/x"),
        lambda: configure("broken-audit"),
        lambda: load_defense("broken-defense"),
    ):
        with pytest.raises(InputError, match="cannot be loaded: RuntimeError: no licence") as e:
            load()
        assert "rw_bad" in e.value.message
        assert _SECRET not in str(e.value)
        assert e.value.__cause__ is None
    assert said("parrot/polly") == "polly"
    assert configure("length").words == 3
    assert load_defense("moat").name == "moat()"


@pytest.mark.usefixtures("packages")
def test_listing_loads_nothing() -> None:
    sys.modules.pop("rw_bad", None)
    forms = target_schemes()
    assert any(form.startswith("broken/") for form in forms)
    assert sum(form.startswith("http/") for form in forms) == 1
    assert AUDITS.names()[: len(AUDITS)] == tuple(AUDITS)
    assert {"length", "broken-audit"} <= set(AUDITS.names())
    assert "rw_bad" not in sys.modules


@pytest.mark.usefixtures("packages")
def test_an_audit_of_another_package_is_configured_and_built() -> None:
    config = configure("length", {"words": "7"})
    audit = build_audit("length", None, config)  # type: ignore[arg-type]  # it needs no model
    assert audit.config.words == 7
    with pytest.raises(InputError, match="length has no option 'colour'"):
        configure("length", {"colour": "red"})
    with pytest.raises(InputError, match=r"'nothing' .* is not an audit"):
        configure("nothing")
    with pytest.raises(InputError) as unknown:
        configure("magic")
    assert "length" in unknown.value.hint


@pytest.mark.usefixtures("packages")
def test_a_defense_of_another_package_is_chained_like_ours() -> None:
    assert load_defense("moat:deep+prompt").name.startswith("moat(deep)+prompt")
    with pytest.raises(InputError, match="made no defense, but a str"):
        load_defense("odd:x")
    with pytest.raises(InputError, match="'dry' failed: RuntimeError: no water"):
        load_defense("dry")
    with pytest.raises(InputError) as unknown:
        load_defense("wall")
    assert "moat" in unknown.value.hint
    assert "mirabel" in unknown.value.hint


@pytest.mark.usefixtures("packages")
def test_doctor_lists_them_and_says_which_cannot_be_loaded() -> None:
    names, broken = admitted(frozenset({Capability.TEXT}))
    assert "length" in names
    assert "mba" in names
    assert any("broken-audit" in why for why in broken)
    assert any("'fragile' failed: OSError: no model" in why for why in broken)


def test_two_packages_with_one_name_are_both_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("rw_one", "rw_two"):
        code = "def open(address): return str"
        install(monkeypatch, tmp_path / name, name, code, targets={"twin": f"{name}:open"})
    with pytest.raises(InputError, match=r"more than once.*rw_one.*rw_two"):
        opened("twin/x")


def test_a_plugin_that_fails_when_asked_for_a_target_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "def open(address): raise ValueError('bad')\ndef none(address): return None"
    entries = {"fails": "rw_fail:open", "empty": "rw_fail:none"}
    install(monkeypatch, tmp_path, "rw_fail", code, targets=entries)
    with pytest.raises(InputError, match="plug-in for fails/ failed: ValueError: bad"):
        opened("fails/x")
    with pytest.raises(InputError, match="NoneType cannot be asked"):
        opened("empty/x")


def test_what_a_factory_is_given() -> None:
    address = Address("x", "a/b?k=4&d=p+q")
    assert address.split(("k", "d")) == ("a/b", {"k": "4", "d": "p+q"})
    with pytest.raises(InputError, match="given twice"):
        Address("x", "a?k=1&k=2").split(("k",))
    assert isinstance(Answer("x"), Answer)


_COLOURS = Registry(
    "colour",
    {
        "red": Listing(lambda: "red"),
        "grey": Listing("tests.unit.nowhere:Grey", form="grey[:SHADE]"),
        "mixed": Listing(str, form="mixed:SHADES"),
    },
    more=", or two of them joined by '+'",
)


def test_an_unknown_name_gets_the_nearest_and_all_known_ones() -> None:
    with pytest.raises(InputError, match="There is no colour 'gray'") as unknown:
        _COLOURS.load("gray")
    assert unknown.value.hint == (
        "Did you mean grey? Known: red, grey[:SHADE], mixed:SHADES, or two of them joined by '+'."
    )
    with pytest.raises(InputError) as far:
        _COLOURS.load("ultraviolet")
    assert "Did you mean" not in (far.value.hint or "")
    assert list(_COLOURS) == list(_COLOURS.names()) == ["red", "grey", "mixed"]
    assert _COLOURS.load("red")() == "red"


@pytest.mark.parametrize("spec", ["red", "grey", "grey:7", "grey:a:b", "mixed:warm"])
def test_what_is_written_in_its_form_is_taken_apart(spec: str) -> None:
    name, _, option = spec.partition(":")
    assert _COLOURS.split(spec) == (name, option)


@pytest.mark.parametrize("spec", ["red:", "red:7", "grey:", "mixed", "mixed:"])
def test_what_is_not_is_told_its_form(spec: str) -> None:
    with pytest.raises(InputError, match=f"The colour '{spec}' is malformed") as caught:
        _COLOURS.split(spec)
    name = spec.partition(":")[0]
    assert caught.value.hint == f"Write it as {_COLOURS[name].form or name}."
    with pytest.raises(InputError, match="There is no colour 'greys:7'"):
        _COLOURS.split("greys:7")
