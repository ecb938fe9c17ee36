"""The hook in the RAG system, chains, names, and defenses by name."""

import asyncio
import dataclasses

import pytest

from ragwitness.defenses.base import Chain, Defense, NoDefense, chain, defend
from ragwitness.defenses.mirabel import Mirabel
from ragwitness.defenses.prompt import PromptModification
from ragwitness.defenses.registry import DEFENSES, load_defense
from ragwitness.defenses.retrieval import DistanceThreshold, Rerank
from ragwitness.defenses.rewriting import QueryRewriting
from ragwitness.errors import InputError
from ragwitness.rag.config import TEMPLATES, DefendedConfig, PromptTemplate, RagConfig
from ragwitness.rag.pipeline import RagSystem
from ragwitness.rag.target import LabTarget
from ragwitness.types import Query
from tests.unit.defenses.defense_fakes import CORPUS, Writer, lexical

_ASKED = "Maria Keller came in"


class Shout(Defense):
    """Puts a word behind the query of one use."""

    def __init__(self, word: str, use: str) -> None:
        self.word, self.use = word, use

    @property
    def name(self) -> str:
        return f"shout({self.word} {self.use})"

    def rewrite(self, query: str, use: str) -> str:
        return f"{query} {self.word}" if use == self.use else query


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
    own = PromptModification(PromptTemplate("defended", "Say nothing. {context}"))
    assert "Say nothing." in own.name


def test_prompts_stay_within_the_context_under_a_longer_template() -> None:
    system = lexical()
    system.generator.context_length = 120  # type: ignore[misc]
    defended = defend(system, PromptModification())
    kept = defended.prompt(_ASKED, 20).messages[0].content
    assert kept.startswith(TEMPLATES["defended"].system)
    assert defended.fit_counts.prompts == 1
    assert system.fit_counts.prompts == 0


def test_each_use_is_rewritten_apart_and_the_users_length_is_told() -> None:
    system = lexical()
    seen = defend(system, Shout("penguins", "answer"))
    assert seen.prompt(_ASKED).messages[1].content == f"{_ASKED} penguins"
    assert seen.retrieve(_ASKED) == system.retrieve(_ASKED)
    assert seen.answer(Query(_ASKED, 2)).prompt_tokens == 4
    found = defend(system, Shout("penguins krill noisy groups southern", "retrieve"))
    assert found.prompt(_ASKED).messages[1].content == _ASKED
    assert found.retrieve(_ASKED)[0].index == 2


def test_a_completed_text_retrieves_rewritten_and_is_continued_verbatim() -> None:
    defended = defend(lexical(k=1), Shout("penguins krill noisy groups southern", "retrieve"))
    prompt = defended.completion_prompt(_ASKED)
    assert prompt.prefill == _ASKED
    assert CORPUS[2].text in prompt.messages[0].content


def test_the_control_without_retrieval_stays_without() -> None:
    defended = defend(lexical(retrieve=False), Mirabel())
    assert defended.retrieve(_ASKED) == []


def test_a_chain_acts_in_order() -> None:
    both = chain(Shout("one", "answer"), chain(Shout("two", "answer"), NoDefense()))
    assert both.rewrite("q", "answer") == "q one two"
    assert both.rewrite("q", "retrieve") == "q"
    assert both.name == "shout(one answer)+shout(two answer)"
    single = Shout("one", "answer")
    assert chain(NoDefense(), single) is single


def test_whoever_needs_the_whole_index_stands_first() -> None:
    assert chain(Mirabel(), Rerank()).candidates(2, 50) == 50
    assert chain(DistanceThreshold(0.1), Rerank()).candidates(2, 50) == 6
    for narrowing in (Rerank(), DistanceThreshold(0.1), chain(PromptModification(), Rerank())):
        with pytest.raises(InputError, match="needs the scores of the whole index"):
            chain(narrowing, Mirabel())
    with pytest.raises(InputError, match="needs the scores of the whole index"):
        chain(Rerank(), chain(PromptModification(), Mirabel()))


def test_whoever_needs_the_retrievers_scores_stands_before_what_replaces_them() -> None:
    rest = chain(Mirabel(), DistanceThreshold(0.1), Rerank(), PromptModification())
    assert rest.reads_scores
    assert rest.rescores
    assert not chain(Mirabel(), DistanceThreshold(0.1)).rescores
    for rescoring in (Rerank(), Chain([PromptModification(), Rerank()])):
        for middle in (NoDefense(), PromptModification()):
            with pytest.raises(InputError, match="needs the retriever's scores, which rerank"):
                chain(rescoring, middle, DistanceThreshold(0.1))
    with pytest.raises(InputError, match="needs the retriever's scores"):
        Chain([rest, Chain([PromptModification(), DistanceThreshold(0.1)])])


def test_every_parameter_is_in_the_identity_of_the_target() -> None:
    system, model = lexical(), Writer("x")
    defenses = [
        *(load_defense(name) for name in ("none", "prompt", "paraphrase", "rewrite", "rerank")),
        *(load_defense(name, model) for name in ("paraphrase", "rewrite", "rerank:model")),
        *(load_defense(f"paraphrase:{where}", model) for where in ("answer", "both")),
        *(
            load_defense(name)
            for name in ("threshold:0.3", "threshold:0.4", "threshold:0.4+prompt")
        ),
        *(
            load_defense(name)
            for name in ("mirabel", "mirabel:0.1", "mirabel-eq7", "mirabel-grubbs")
        ),
        Mirabel(scope="document"),
        Rerank(4),
        PromptModification(TEMPLATES["strict"]),
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
    defended = defend(lexical(k=1), Shout("penguins krill noisy groups southern", "retrieve"))
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
        ("rewrite:retrieve", QueryRewriting),
        ("rerank:overlap", Rerank),
        ("threshold:0.3", DistanceThreshold),
        ("mirabel", Mirabel),
        (" mirabel:0.1 ", Mirabel),
    ],
)
def test_a_defense_by_name(spec: str, kind: type[Defense]) -> None:
    assert type(load_defense(spec)) is kind


def test_options_by_name() -> None:
    assert load_defense("mirabel:0.1") == Mirabel(0.1)
    assert load_defense("mirabel") == Mirabel(0.05, "algorithm", "passage")
    assert load_defense("mirabel-eq7") == Mirabel(0.05, "equation")
    assert load_defense("mirabel-grubbs:0.2") == Mirabel(0.2, "grubbs")
    assert load_defense("threshold:-1.5") == DistanceThreshold(-1.5)
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
        ("threshold", "'threshold' is malformed"),
        ("threshold:near", "'threshold:near' is malformed"),
        ("threshold:nan", "finite"),
        ("mirabel:1", "between 0 and 1"),
        ("mirabel:often", "malformed"),
        ("paraphrase:somewhere", "malformed"),
        ("rerank:3", "malformed"),
        ("rerank:model", "needs a language model"),
        ("rerank+mirabel", "Put it first"),
        ("rerank+threshold:0.3", "needs the retriever's scores, which rerank"),
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
