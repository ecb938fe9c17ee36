"""The hook in the RAG system, chains, names, and defenses by name."""

import asyncio
import dataclasses

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Query
from ragwitness.rag.config import TEMPLATES, DefendedConfig, RagConfig
from ragwitness.rag.defenses.base import Defense, NoDefense, chain, defend
from ragwitness.rag.defenses.defense_registry import DEFENSES, PromptModification, load_defense
from ragwitness.rag.defenses.mirabel import Mirabel
from ragwitness.rag.defenses.rewriting import QueryRewriting
from ragwitness.rag.pipeline import RagSystem
from ragwitness.rag.target import LabTarget
from tests.unit.rag.defenses.defense_fakes import CORPUS, Writer, lexical

_ASKED = "Maria Keller came in"


class Shout(Defense):
    """Puts a word behind the query that retrieves."""

    def __init__(self, word: str) -> None:
        self.word = word

    @property
    def name(self) -> str:
        return f"shout({self.word})"

    def rewrite(self, query: str) -> str:
        return f"{query} {self.word}"


def test_an_undefended_system_is_what_it_was_before_the_hook() -> None:
    # Computed by the code before the hook existed: stored answers stay valid.
    assert LabTarget(lexical()).name == "lab:0e1d2d716f4318be"
    assert "defense" not in dataclasses.asdict(lexical().config)
    assert "defense" not in lexical().describe()
    assert lexical().prompt(_ASKED).messages[0].content == (
        f"{TEMPLATES['plain'].system}{CORPUS[0].text}\n\n{CORPUS[2].text}"
    )


def test_no_defense_returns_the_system_itself() -> None:
    system = lexical()
    assert defend(system, NoDefense()) is system
    assert defend(system, chain(NoDefense(), chain())) is system


def test_prompt_modification_changes_the_system_prompt_and_nothing_else() -> None:
    system = lexical()
    defended = defend(system, PromptModification())
    before, after = system.prompt(_ASKED), defended.prompt(_ASKED)
    assert after.messages[0].content == before.messages[0].content.replace(
        TEMPLATES["plain"].system, TEMPLATES["defended"].system
    )
    assert "illegal" in after.messages[0].content
    assert after.messages[1] == before.messages[1]
    assert defended.retrieve(_ASKED) == system.retrieve(_ASKED)
    assert defended.describe()["template"] == "defended"
    assert defended.describe()["defense"] == "prompt(defended)"


def test_prompts_stay_within_the_context_under_a_longer_template() -> None:
    system = lexical()
    system.generator.context_length = 120  # type: ignore[misc]
    defended = defend(system, PromptModification())
    kept = defended.prompt(_ASKED, 20).messages[0].content
    assert kept.startswith(TEMPLATES["defended"].system)
    assert defended.prompts == 1
    assert system.prompts == 0


def test_only_what_retrieves_is_rewritten() -> None:
    found = defend(lexical(), Shout("penguins krill noisy groups southern"))
    assert found.prompt(_ASKED).messages[1].content == _ASKED
    assert found.answer(Query(_ASKED, 2)).prompt_tokens == 4
    assert found.retrieve(_ASKED)[0].index == 2


def test_a_completed_text_retrieves_rewritten_and_is_continued_verbatim() -> None:
    defended = defend(lexical(k=1), Shout("penguins krill noisy groups southern"))
    prompt = defended.completion_prompt(_ASKED)
    assert prompt.prefill == _ASKED
    assert CORPUS[2].text in prompt.messages[0].content


def test_the_control_without_retrieval_stays_without() -> None:
    defended = defend(lexical(retrieve=False), Mirabel())
    assert defended.retrieve(_ASKED) == []


def test_a_chain_acts_in_order() -> None:
    both = chain(Shout("one"), chain(Shout("two"), NoDefense()))
    assert both.rewrite("q") == "q one two"
    assert both.name == "shout(one)+shout(two)"
    single = Shout("one")
    assert chain(NoDefense(), single) is single


def test_every_parameter_is_in_the_identity_of_the_target() -> None:
    system, model = lexical(), Writer("x")
    defenses = [
        *(load_defense(name) for name in ("none", "prompt", "paraphrase", "mirabel+prompt")),
        *(load_defense(name) for name in ("mirabel", "mirabel:0.1")),
        load_defense("paraphrase", model),
    ]
    names = [LabTarget(defend(system, defense)).name for defense in defenses]
    assert len(set(names)) == len(defenses)
    again = LabTarget(defend(lexical(), load_defense("mirabel:0.1"))).name
    assert again == LabTarget(defend(system, load_defense("mirabel:0.1"))).name


def test_settings_of_a_defended_system_are_not_used_without_it() -> None:
    defended = defend(lexical(), PromptModification())
    assert isinstance(defended.config, DefendedConfig)
    assert defended.config.template == TEMPLATES["plain"]
    rest = (defended.passages, defended.index, defended.generator)
    with pytest.raises(InputError, match="but none is given"):
        RagSystem(*rest, defended.config)
    with pytest.raises(InputError, match=r"behind 'prompt\(defended\)'"):
        RagSystem(*rest, defended.config, Mirabel())
    same = RagSystem(*rest, defended.config, PromptModification())
    assert LabTarget(same).name == LabTarget(defended).name
    with pytest.raises(InputError, match="already"):
        defend(defended, Mirabel())
    assert dataclasses.replace(defended.config, k=3).k == 3
    assert RagConfig() == RagConfig()


def test_the_lab_target_answers_through_the_defense() -> None:
    defended = defend(lexical(k=1), Shout("penguins krill noisy groups southern"))
    query = Query("of the southern", 2)
    answer = asyncio.run(LabTarget(defended).ask(query))
    assert answer == defended.answer(query)
    assert answer.text == " coast hunt"
    assert answer.contexts is None


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ("none", NoDefense),
        ("none+none", NoDefense),
        ("prompt", PromptModification),
        ("paraphrase", QueryRewriting),
        ("mirabel", Mirabel),
        (" mirabel:0.1 ", Mirabel),
    ],
)
def test_a_defense_by_name(spec: str, kind: type[Defense]) -> None:
    assert type(load_defense(spec)) is kind


def test_options_by_name() -> None:
    assert load_defense("mirabel:0.1") == Mirabel(0.1)
    assert load_defense("mirabel") == Mirabel(0.05)
    # Stored answers know a target by these names.
    assert load_defense("paraphrase").name == ("paraphrase(retrieve by the generator)")
    assert load_defense("paraphrase", Writer("x")).name == "paraphrase(retrieve by writer(x))"
    assert load_defense("mirabel+none+prompt").name == (
        "mirabel(rho=0.05 rule=algorithm scope=passage)+prompt(defended)"
    )
    assert list(DEFENSES) == [form.split(":")[0].split("[")[0] for form in DEFENSES.forms()]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("", "no defense ''"),
        ("nothing", "no defense 'nothing'"),
        ("Mirabel", "no defense 'Mirabel'"),
        ("prompt+", "no defense ''"),
        ("prompt:strong", "'prompt:strong' is malformed"),
        ("none:", "'none:' is malformed"),
        ("rerank", "no defense 'rerank'"),
        ("mirabel:1", "between 0 and 1"),
        ("mirabel:often", "malformed"),
        ("paraphrase:answer", "malformed"),
    ],
)
def test_bad_names_are_refused(spec: str, says: str) -> None:
    with pytest.raises(InputError, match=says.replace("(", r"\(")):
        load_defense(spec)


def test_an_unknown_name_is_told_the_known_ones() -> None:
    with pytest.raises(InputError) as error:
        load_defense("moat")
    for form in DEFENSES.forms():
        assert form in error.value.hint
