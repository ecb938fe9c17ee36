"""Runon: places, questions, what an answer says behind a run, and the opponents of the method."""

from __future__ import annotations

import asyncio
import math
import random
import re
import time

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, Capability, Decision, Document, Query, TokenLogprob
from ragwitness.membership.methods.runon import (
    Background,
    Place,
    Runon,
    RunonConfig,
    find_places,
    read_place,
)
from ragwitness.membership.plan import AuditPlan, among
from ragwitness.membership.response_parsing.probabilities import beyond, next_probability
from ragwitness.membership.response_parsing.replies import AnswerOutcome
from ragwitness.membership.run import run_audit
from ragwitness.runner.worker import Worker
from ragwitness.text.replies import plain_word
from ragwitness.text.sample import load_sample
from tests.support.copier import Copier

_SAMPLE = load_sample()
_QUOTED = re.compile(r"(?:\u201c\u2026|\")(.+?) \u2026(?:\u201d|\")")


def _asked(query: Query) -> tuple[str, str]:
    altered, true = _QUOTED.findall(query.prompt)
    return altered, true


class _Chat:
    """A chat model: it says one of the runs again and runs on where it holds the true one.

    Args:
        held: Texts of its index.
        manner: How an answer looks.
        knows: Texts that the model knows by heart.
    """

    name = "chat"
    capabilities = frozenset({Capability.TEXT})

    def __init__(self, held, manner="The correct answer is: \u201c{}\u201d", knows=()) -> None:
        self.held = [" ".join(text.split()) for text in (*held, *knows)]
        self.manner = manner
        self.asked: list[Query] = []

    async def ask(self, query: Query) -> Answer:
        self.asked.append(query)
        altered, true = _asked(query)
        for text in self.held:
            if (at := text.find(true)) >= 0:
                return Answer(self.manner.format(text[at : at + len(true) + 40]))
        return Answer(self.manner.format(random.Random(true).choice((altered, true))))

    async def close(self) -> None:
        """Nothing is open."""


def _audit(**options) -> Runon:
    return Runon(Copier(), RunonConfig(**options)).among(_SAMPLE[:80])


def _scores(target, documents, audit=None):
    audit = audit or _audit()
    return asyncio.run(Worker(target, None, 2).run(audit, documents, "documents"))


def test_members_stand_out_from_all_others_by_text_alone() -> None:
    target = _Chat([one.text for one in _SAMPLE[:20]])
    inside, outside = (_scores(target, _SAMPLE[a:b]) for a, b in ((0, 20), (40, 60)))
    assert min(o.score.value for o in inside) > max(o.score.value for o in outside) == 0.0
    # Two rare words are enough, so a member takes fewer questions than a document outside.
    assert sum(o.queries for o in inside) < sum(o.queries for o in outside) / 2


def test_a_verdict_that_accuses_shows_the_words_that_decided() -> None:
    plan = AuditPlan(tuple(_SAMPLE[:8]), known_out=tuple(_SAMPLE[40:80]))
    target = _Chat([one.text for one in _SAMPLE[:8]])
    audit = among(Runon(Copier()), plan.every_document)
    result = asyncio.run(run_audit(plan, target, audit))
    accused = [one for one in result.verdicts if one.decision is Decision.IN]
    assert len(accused) == 8
    texts = {one.id: one.text for one in plan.documents}
    for one in accused:
        first = one.evidence[0]
        assert f"{first.before} {first.word}" in " ".join(texts[one.document].split())
        assert first.probability.low == 1.0


def test_which_run_is_chosen_counts_for_nothing() -> None:
    class Guesser(_Chat):
        async def ask(self, query: Query) -> Answer:
            return Answer(self.manner.format(_asked(query)[1]))  # always the true one

    assert [o.score.value for o in _scores(Guesser([]), _SAMPLE[:5])] == [0.0] * 5


@pytest.mark.parametrize(
    ("manner", "held"),
    [
        ("{}", True),
        ("<think>Which one? The second.</think>\n\n**{}**", True),
        ('{{"answer": "{}"}}', True),
        ("- Based on the context, it says: {}", True),
        ("I don't know.", False),
        ("The patient should see a doctor about it.", False),
        ("I cannot find it; perhaps: {}", True),
        ("Both are wrong.", False),
    ],
)
def test_manners_of_answers(manner, held) -> None:
    found = _scores(_Chat([one.text for one in _SAMPLE[:3]], manner), _SAMPLE[:3])
    assert [o.score.value > 0 for o in found] == [held] * 3


def test_only_failures_have_no_score() -> None:
    class Broken(_Chat):
        async def ask(self, query: Query) -> Answer:
            return Answer("", error="status 500")

    (found,) = _scores(Broken([]), _SAMPLE[:1])
    assert found.score.value is None
    assert found.score.reason == "status 500"
    (declined,) = _scores(_Chat([], "I don't know."), _SAMPLE[:1])
    assert declined.score.value == 0.0
    assert declined.score.details["declined"] == declined.score.details["asked"]


def test_a_model_that_knows_the_text_by_heart_runs_on_as_well() -> None:
    """The limit of the method: known-outside documents must be as famous (docs/design/runon.md)."""
    (found,) = _scores(_Chat([], knows=[_SAMPLE[0].text]), _SAMPLE[:1])
    assert found.score.value > 0


def test_no_word_that_decides_is_ever_sent() -> None:
    for document in _SAMPLE[:40]:
        for place, query in _audit()._turns(document):
            sent = {plain_word(word) for word in query.prompt.split()}
            told = [key for key, nats in zip(place.following, place.worth, strict=True) if nats]
            assert told
            assert sent.isdisjoint(told)


def test_a_place_ends_within_a_phrase_before_a_rare_word_and_changes_one_word() -> None:
    documents = _SAMPLE[:80]
    background = Background(documents)
    places = [p for d in documents for p in find_places(d.text, RunonConfig(), background)]
    assert len(places) > 4 * len(documents)
    for place in places:
        assert len(place.true.split()) == 10
        assert re.search(r"\w$", place.true)
        changed = [a != b for a, b in zip(place.true.split(), place.altered.split(), strict=True)]
        assert sum(changed) == 1
        assert not any(changed[-3:])  # the tail is said of either run
        assert max(place.worth[:3]) > 0


def test_what_other_documents_say_as_well_is_not_asked_about() -> None:
    footer = "This message is confidential and was written for the addressee of the letter alone."
    letters = [Document(f"l{i}", f"{one.text}\n\n{footer}") for i, one in enumerate(_SAMPLE[:20])]
    audit = Runon(Copier()).among(letters)
    questions = [query.prompt for one in letters for query in audit.questions(one)]
    assert questions
    assert not any("addressee of the letter" in one for one in questions)


def test_nothing_depends_on_the_order_or_on_who_is_in_question() -> None:
    one, other = (Runon(Copier()).among(part) for part in (_SAMPLE[:30], _SAMPLE[:30][::-1]))
    assert one.elsewhere.digest == other.elsewhere.digest
    assert one.questions(_SAMPLE[3]) == other.questions(_SAMPLE[3])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Too short.",
        "the of and to in a is it for on as with at by from or an be this that",
        "\u201cQuoted\u201d " * 30,
        "1 2 3 4 5 6 7 8 9",
    ],
)
def test_a_text_without_places_is_named_and_costs_nothing(text) -> None:
    (found,) = _scores(_Chat([]), [Document("d", text)])
    assert found.queries == 0
    assert "no 10 words in a row" in found.score.reason


def test_texts_that_hold_the_templates_own_fields_are_sent_as_they_are() -> None:
    text = (
        "The letter of Mr {true} Holloway from Brackenford mentions {altered} seventeen barrels of"
        " smoked herring which the harbour master Ottoline refused to weigh again yesterday."
    )
    audit = Runon(Copier()).among([*_SAMPLE[:30], Document("d", text)])
    assert all("{" not in q.prompt for q in audit.questions(Document("d", text)))


def test_documents_in_an_unspaced_script_have_places() -> None:
    texts = [
        f"昨天下午{name}医生在{city}的诊所里给一位老人检查了左边的膝盖然后建议他每天散步{n}分钟"
        for name, city, n in (("王", "苏州", 20), ("李", "成都", 35), ("赵", "桂林", 50))
    ]
    documents = [Document(str(i), text) for i, text in enumerate(texts)]
    audit = Runon(Copier()).among(documents)
    assert any(audit.questions(one) for one in documents)


@pytest.mark.parametrize(
    "text",
    [
        "".join(chr(0x4E00 + n * 7919 % 8000) for n in range(20_000)),
        "Chapter one" + "." * 200_000 + "page five and a few more words that stand behind it here",
    ],
    ids=["every sign of a script", "a line of dots"],
)
def test_long_texts_are_read_in_time(text) -> None:
    began = time.process_time()
    find_places(text, RunonConfig(), Background([*_SAMPLE[:10], Document("d", text)]))
    assert time.process_time() - began < 5


def test_one_word_has_one_key_however_its_letters_are_coded() -> None:
    assert plain_word("caf\u00e9") == plain_word("cafe\u0301,") == plain_word("\uff23AF\u00c9")


def test_a_text_that_is_none_of_the_set_has_words_no_rarer_than_any_document_of_it() -> None:
    background = Background(_SAMPLE[:20])
    (least,) = {round(background.information(w), 9) for w in ("zzyzx", "qwertz")}
    words = {plain_word(w) for one in _SAMPLE[:20] for w in one.text.split()}
    assert least <= max(map(background.information, words)) + 1e-9


def test_in_its_second_round_a_place_counts_once() -> None:
    text = _SAMPLE[0].text
    audit = _audit(enough=1000.0)
    (found,) = _scores(_Chat([text]), [_SAMPLE[0]], audit)
    places = find_places(text, audit.config, audit.elsewhere)
    assert found.score.value <= sum(sum(one.worth) for one in places) + 1e-9


def test_a_first_look_ends_where_nothing_was_said_and_goes_on_where_something_was() -> None:
    held, other = _SAMPLE[0], _SAMPLE[40]
    inside, outside = _scores(_Chat([held.text]), [held, other], _audit(look=2, enough=1000.0))
    assert (inside.queries, outside.queries) == (6, 2)
    all_asked = _scores(_Chat([held.text]), [held, other], _audit(enough=1000.0))
    assert all_asked[0].score == inside.score
    assert all_asked[1].queries == 6


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("He said: a b c d e", 2),
        ("a b c", 0),
        ("A, b. C! D?", 1),
        ("a b c x. And: a b c d", 1),
        ("nothing of it", None),
        ("a b d e", None),
        ("", None),
        ("a b c \uff44 e\u00ad F", 3),  # full width, a hyphen that is not seen
    ],
)
def test_words_beyond_what_was_sent(text, count) -> None:
    assert beyond(text, ("a", "b", "c"), ("d", "e", "f")) == count


def _tokens(*pairs: tuple[str, dict[str, float]]) -> tuple[TokenLogprob, ...]:
    return tuple(
        TokenLogprob(
            text, math.log(top.get(text, 1.0)), tuple((t, math.log(p)) for t, p in top.items())
        )
        for text, top in pairs
    )


def test_the_next_word_is_read_where_the_quotation_closes() -> None:
    tokens = _tokens(
        ("one", {"one": 0.9}),
        (" two", {" two": 0.9}),
        (" three", {" three": 0.9}),
        ('"', {'"': 0.6, " four": 0.3}),
    )
    assert next_probability(tokens, ("two", "three"), "four").low == pytest.approx(0.3)
    assert next_probability(tokens, ("two", "three"), "nine").low == 0.0
    place = Place("one two three", "", ("two", "three"), ("four",), (4.0,), "four")
    read = read_place(place, Answer("one two three", tokens))
    assert (read.outcome, read.words) == (AnswerOutcome.ANSWERED, 0)
    assert read.evidence == pytest.approx(4.0 * 0.3)


def test_a_word_that_is_said_further_on_in_the_answer_is_not_the_next_one() -> None:
    words = ("one", " two", " three", ".", " That", " is", " four", " more")
    tokens = _tokens(*((word, {word: 0.9}) for word in words))
    assert next_probability(tokens, ("two", "three"), "four").low == 0.0


@pytest.mark.parametrize(
    "options",
    [
        {"questions": 0},
        {"tail": 1},
        {"enough": 0.0},
        {"question": "Which?"},
        {"sentence": "{true}"},
    ],
)
def test_settings_with_which_nothing_can_be_asked_are_refused(options) -> None:
    with pytest.raises(InputError):
        RunonConfig(**options)


def test_under_the_null_levels_hold_with_ties_against_the_accusation() -> None:
    """The target holds nothing and runs on with a chance word now and then; 2,000 documents."""
    from ragwitness.stats.p_values import conformal_p_values

    rng = random.Random(7)
    false = 0
    for _ in range(100):
        scores = [0.0 if rng.random() < 0.9 else rng.random() * 8 for _ in range(60)]
        false += sum(value <= 0.05 for value in conformal_p_values(scores[20:40], scores[40:]))
    assert false / 2000 <= 0.07
