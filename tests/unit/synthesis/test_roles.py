"""Which model plays which role: one for all, or several."""

from __future__ import annotations

import asyncio

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.stored_names import stored_text
from ragwitness.core.types import Answer, Query
from ragwitness.runner.response_store import query_key
from ragwitness.synthesis.agents import ROLES, Asking, ByRole, MakingConfig, RoleQuery, roles_of
from ragwitness.synthesis.generator_registry import build_method, needs_model, parse_spec
from ragwitness.synthesis.sage import Sage
from tests.support.writers import good, kind_of
from tests.unit.synthesis.test_sage import play


class _Named:
    capabilities = frozenset()

    def __init__(self, name: str) -> None:
        self.name, self.asked = name, []

    async def ask(self, query: Query) -> Answer:
        self.asked.append(query)
        return Answer(self.name)

    async def close(self) -> None:
        self.asked.append(None)


def test_each_query_goes_to_the_model_of_its_role() -> None:
    roles = roles_of("usual", {"judge": "strict", "rewriter": None})
    assert roles == (("judge", "strict"),)
    config = MakingConfig(asking=Asking(roles=roles))
    _, asked = play(Sage(config), lambda q: good(kind_of(q.prompt), q.prompt))
    to = [(kind_of(q.prompt), getattr(q, "model", None)) for q in asked]
    assert to == [("identify", None), ("extract", None), ("generate", None), ("judge", "strict")]
    usual, strict = _Named("usual"), _Named("strict")
    both = ByRole(usual, {"strict": strict})
    said = [asyncio.run(both.ask(query)).text for query in asked]
    assert said == ["usual", "usual", "usual", "strict"]
    assert type(strict.asked[0]) is Query  # no target of another package meets our class
    asyncio.run(both.close())
    assert (usual.asked[-1], strict.asked[-1]) == (None, None)


def test_another_judge_asks_nothing_else_anew() -> None:
    def keys(judge: str) -> list[str]:
        roles = roles_of("usual", {"judge": judge})
        config = MakingConfig(asking=Asking(roles=roles))
        _, asked = play(Sage(config), lambda q: good(kind_of(q.prompt), q.prompt))
        return [query_key("usual", query) for query in asked]

    first, second = keys("strict"), keys("lenient")
    assert first[:3] == second[:3]
    assert first[3] != second[3]


def test_what_was_stored_before_there_were_roles_is_found_again() -> None:
    assert "roles" not in stored_text(MakingConfig())
    assert "judge" in stored_text(MakingConfig(asking=Asking(roles=(("judge", "x"),))))
    plain = query_key("t", Query("p", seed=1))
    assert query_key("t", RoleQuery("p", seed=1, model="x")) != plain


def test_models_for_all_roles_need_no_usual_one() -> None:
    config = MakingConfig(asking=Asking(roles=roles_of(None, dict.fromkeys(ROLES, "one"))))
    sage, stage = (build_method(name, config) for name in ("sage", "stage-1"))
    assert not needs_model(sage)
    assert not needs_model(stage)
    assert needs_model(build_method("sage"))


def test_a_method_may_have_roles_and_attributes_of_its_own() -> None:
    spec = parse_spec("stage-1+extractor=openai/a:b+m=2")
    assert (spec.name, spec.roles, spec.m) == ("stage-1", (("extractor", "openai/a:b"),), 2)
    config = spec.config(MakingConfig(asking=Asking(roles=(("judge", "x"),))))
    assert config.asking.roles == (("extractor", "openai/a:b"), ("judge", "x"))
    assert config.domain.count == 2


@pytest.mark.parametrize("spec", ["sage+m", "sage+m=x", "sage+critic=a", "sage+judge=", "sage+m=0"])
def test_settings_that_no_method_takes_are_refused(spec: str) -> None:
    with pytest.raises(InputError):
        parse_spec(spec).config(MakingConfig())
    with pytest.raises(InputError, match="no role 'critic'"):
        roles_of(None, {"critic": "x"})
