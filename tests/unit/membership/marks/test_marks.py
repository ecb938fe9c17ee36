"""Marks: what is drawn and kept, what is asked and read, and how often a verdict is wrong."""

from __future__ import annotations

import functools
import itertools
import json
import math
import os
import random
import stat
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
from scipy.stats import binom, binomtest, chisquare

import ragwitness as rw
from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, Document
from ragwitness.membership.marks.key import MarksKey, read_key, write_key
from ragwitness.membership.marks.lots import Lot, MarkedDocument, find_lots, named, table, word_pool
from ragwitness.membership.marks.questions import LotAnswer, LotAnswers, holm, odds_of, tail
from ragwitness.membership.marks.run import MarksAudit
from ragwitness.membership.results.marks import MarksResult, chance
from ragwitness.runner.worker import Done, advance
from ragwitness.text.words import plain_tokens
from tests.support.marked import copies, document, marked, reader

TALE = (
    "A poor woodcutter lived in the forest with his wife and he worked very hard every day until"
    " the king of that country looked at the road and found that many people were walking there."
    " They carried big pieces of wood to the village, and the noise was terrible to hear for him."
    " Then the girl put her clothes on and waited in the hut with a friend from the other village."
)


@pytest.fixture(autouse=True)
def _one_draw(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has one draw of its own: chance calls a document in once in twenty draws."""
    monkeypatch.setattr(os, "urandom", random.Random(request.node.name).randbytes)


def lots_of(text: str, most: int = 12, **options: object) -> MarkedDocument:
    one = Document("letter.txt", text)
    return find_lots(one, most, word_pool([one]), random.Random(0), **options)


# Drawing.


@pytest.mark.parametrize(
    ("mark", "why"),
    [
        ("{one}", "has one alternative"),
        ("{a|b", "is not closed"),
        ("{a|{b|c}}", "holds another brace"),
        ("a|b}", "is not opened"),
        ("{a|}", "has an alternative without a word"),
        ("{\u2013|\u2014}", "has an alternative without a word"),
        ("{cat|dog|Cat}", "has two alternatives that read alike"),
    ],
)
def test_a_malformed_mark_is_refused_by_name(mark, why):
    text = f"{{One|Another}} of six words stands before the mark {mark} here."
    with pytest.raises(InputError, match=why) as error:
        lots_of(text)
    assert error.value.message.startswith("letter.txt: the mark ")


def test_braces_without_a_bar_and_with_no_braces_are_text():
    assert lots_of('{"a": 1} and {b}', 0).text == '{"a": 1} and {b}'
    text = "Six words stand before the mark {a|b} here."
    assert lots_of(text, 0, braces=False).text == text


@pytest.mark.parametrize(
    "text",
    [
        "Too {soon|early} for a question.",
        "Six words stand before the mark {one|two} and then {three|four}.",
        'Six words stand before the mark and "so it is {one|two}" here.',
    ],
)
def test_a_mark_without_words_of_its_own_before_it_is_refused(text):
    with pytest.raises(InputError, match="fewer than 5 words come before the mark"):
        lots_of(text)


def test_the_packaged_list_marks_words_and_spares_the_rest():
    found = lots_of(TALE)
    assert len(found.lots) >= 6
    assert found.copy([0] * len(found.lots)) == TALE
    changed = found.copy([len(lot.alternatives) - 1 for lot in found.lots])
    kept = TALE
    for lot in reversed(found.lots):
        assert lot.alternatives[0] == TALE[lot.start : lot.end]
        kept = kept[: lot.start] + lot.alternatives[-1] + kept[lot.end :]
    assert changed == kept


def test_no_question_quotes_a_lot():
    found = lots_of(TALE)
    for lot, before in itertools.pairwise(reversed(found.lots)):
        gap = " ".join(TALE[before.end : lot.start].split())
        assert gap.endswith(lot.left)
        assert lot.altered == "" or lot.altered != lot.left


@pytest.mark.parametrize("language", ["English", "German", "Chinese"])
def test_the_packaged_list_has_several_words_a_group_and_each_is_read_apart(language):
    for line in table()["words"][language].strip().splitlines():
        own, _, others = line.partition(" / ")
        words = [w.replace("_", " ") for w in (*own.split(), *others.split())]
        plain = [w.split("!")[0].split("+")[0].split("=")[0].split("-")[0] for w in words]
        keys = [tuple(plain_tokens(word)) for word in plain]
        assert len({*keys}) == len(keys) >= 2, line


def test_an_article_keeps_its_word():
    text = "Everybody in the old town cried that this was an important day for us."
    lot = next(one for one in lots_of(text).lots if one.alternatives[0] == "important")
    assert lot.alternatives == ("important", "essential")


def test_words_in_german_and_chinese_are_marked():
    german = (
        "Der alte Müller ging mit dem Esel und der Katze in die Stadt und kaufte dort ein Brot."
        " Am Abend kam er mit dem Knecht und der Magd sofort nach Hause und aß mit ihnen das Brot."
    )
    assert [lot.alternatives[0] for lot in lots_of(german).lots] == ["sofort"]
    chinese = "昨天下午三点左右他们在城里的茶馆见面并且突然决定离开那里去乡下看望老朋友。"
    (lot,) = lots_of(chinese).lots
    assert (lot.alternatives[0], chinese[lot.start : lot.end]) == ("突然", "突然")
    assert lot.left.endswith("见面并且")


def test_a_model_proposes_other_words():
    found = lots_of(TALE, 3, propose=lambda _around, word: [f"{word}x", f"{word}y", word])
    assert [lot.alternatives[1] for lot in found.lots] == [
        f"{lot.alternatives[0]}x" for lot in found.lots
    ]


@pytest.mark.parametrize(
    ("answer", "alternatives", "left", "which"),
    [
        ("It was \u201cquickly\u201d.", ("quickly", "slowly"), "", 0),
        ("Quickly or slowly.", ("quickly", "slowly"), "", None),
        ("I do not know.", ("quickly", "slowly"), "", None),
        ("The cat flap.", ("cat", "cat flap"), "", 1),
        ("The cat.", ("cat", "cat flap"), "", 0),
        ("A cat flap and a cat.", ("cat", "cat flap"), "", None),
        ("And he ran slowly, though I ran quickly.", ("quickly", "slowly"), "and he ran", 1),
        ("Es war „Straße“.", ("STRASSE", "Weg"), "", 0),
        ("是大型的。", ("大", "大型"), "", 1),
        ("后面是突然。", ("忽然", "突然"), "", 1),
        ("", ("a", "b"), "", None),
    ],
)
def test_an_answer_names_one_alternative_or_none(answer, alternatives, left, which):
    assert named(answer, alternatives, left) == which


# The key.


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "marks.json"
    write_key(path, MarksKey.fresh(twenty().documents[:3]))
    return path


def test_a_key_is_secret_and_read_back(key):
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    stored = read_key(key)
    assert json.loads(key.read_text())["drawn"] == [list(row) for row in stored.drawn]
    with pytest.raises(InputError, match="is there already"):
        write_key(key, stored)


def test_a_lost_key_is_named(tmp_path):
    with pytest.raises(InputError, match=r"lost\.json"):
        rw.audit_marks(lambda prompt: prompt, tmp_path / "lost.json")


CHANGES: dict[str, Callable[[dict], object]] = {
    "its seed": lambda row: row.update(seed="00" * 32),
    "its blinding": lambda row: row.update(blinding="00"),
    "a text": lambda row: row["documents"][0].update(text="Another text."),
    "an alternative": lambda row: row["documents"][0]["lots"][0]["alternatives"].pop(),
    "a lot": lambda row: row["documents"][0]["lots"].pop(),
    "what was drawn": lambda row: row["drawn"][0].reverse() or row["drawn"][0].append(0),
    "a document": lambda row: row["documents"].pop(),
    "a field": lambda row: row.pop("beacon"),
    "a type": lambda row: row.update(documents=3),
    "a beacon": lambda row: row.update(beacon="ab", drawn=[[0]]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_key_is_named(key, change):
    row = json.loads(key.read_text())
    CHANGES[change](row)
    key.write_text(json.dumps(row))
    with pytest.raises(InputError, match="was changed since it was written"):
        read_key(key)


def test_another_file_is_no_key(key):
    key.write_text('{"version": "another"}')
    with pytest.raises(InputError, match="is no key of marked documents"):
        read_key(key)
    key.write_text("half a ke")
    with pytest.raises(InputError):
        read_key(key)


def test_a_key_that_others_can_read_is_refused(key):
    key.chmod(0o644)
    with pytest.raises(InputError, match="other users"):
        read_key(key)


def test_a_key_of_other_texts_is_named(key):
    with pytest.raises(InputError, match="the key of other texts"):
        rw.audit_marks(lambda prompt: prompt, key, documents=[document(7).text])


def test_lots_are_uniform_and_follow_from_seed_and_beacon():
    base = MarksKey.fresh(twenty().documents[:1])
    drawn = [replace(base, seed=bytes([n % 256, n // 256]) * 16).drawn[0] for n in range(400)]
    counts = [sum(row[lot] == choice for row in drawn for lot in range(9)) for choice in range(4)]
    assert chisquare(counts).pvalue > 1e-4
    promised = MarksKey.fresh(base.documents, "a lottery")
    with pytest.raises(InputError, match="has not been joined"):
        _ = promised.drawn
    assert promised.joined("0xAB").drawn == promised.joined("ab").drawn
    assert promised.joined("ab").drawn != promised.joined("ac").drawn
    with pytest.raises(InputError, match="Another beacon"):
        promised.joined("ab").joined("ac")
    with pytest.raises(InputError, match="names no beacon"):
        base.joined("ab")


# How often a verdict is wrong.


def test_the_tail_is_that_of_independent_trials():
    assert tail([0.25] * 9, 6) == pytest.approx(binom.sf(5, 9, 0.25))
    chances = [0.5, 0.25, 1 / 3]
    brute = sum(
        math.prod(p if hit else 1 - p for p, hit in zip(chances, hits, strict=True))
        for hits in itertools.product((0, 1), repeat=3)
        if sum(hits) >= 2
    )
    assert tail(chances, 2) == pytest.approx(brute)
    assert tail([], 0) == tail(chances, 0) == 1.0


def _document(*sizes: int) -> MarkedDocument:
    lots = [Lot(n, n + 1, tuple(map(str, range(size)))) for n, size in enumerate(sizes)]
    return MarkedDocument("d", "x" * len(sizes), tuple(lots))


def test_the_bets_win_nothing_on_average():
    one = _document(2, 3, 4)
    asked = LotAnswers(named={0: 1, 1: 0, 2: 3})
    every = list(itertools.product(range(2), range(3), range(4)))
    winnings = [odds_of(one, drawn, asked).e_value for drawn in every]
    assert sum(winnings) == pytest.approx(len(every))
    assert odds_of(one, (1, 0, 3), asked).e_value > 15
    # Lots that may still be named count as wrong, and those that cannot be do not count.
    assert odds_of(one, (1, 0, 3), LotAnswers(named={2: 3})).p_value == pytest.approx(0.75)
    closed = LotAnswers(named={2: 3}, closed=frozenset({0, 1}))
    assert odds_of(one, (1, 0, 3), closed).p_value == pytest.approx(0.25)


def test_holm_is_the_step_down_of_bonferroni():
    values = [0.01, 0.04, 0.03, 0.2]
    assert holm(values) == pytest.approx([0.04, 0.09, 0.09, 0.2])
    assert holm([]) == []


def test_chances_are_said_in_plain_words():
    assert chance(1 / 41_234) == "once in 41,000 times"
    assert chance(0.25) == "once in 4 times"
    assert chance(0.75) == "more often than not"


Answerer = Callable[[str, int, random.Random], str]


def _first(prompt: str, _asked: int, _draw: random.Random) -> str:
    """Prefers a word, and says it whatever is asked."""
    return min(("poor", "quickly", "claimed"), key=lambda word: -(word in prompt)) + "."


def _likely(prompt: str, _asked: int, draw: random.Random) -> str:
    """Guesses, or goes on with its memory of a like text."""
    words = ("poor", "meagre", "quickly", "swiftly", "claimed", "stated")
    return draw.choice([w for w in words if w in prompt] or words)


def _tires(prompt: str, asked: int, draw: random.Random) -> str:
    """Answers a few questions of each document, then no more."""
    return _likely(prompt, asked, draw) if asked < 4 else "I am tired."


def _both(prompt: str, asked: int, draw: random.Random) -> str:
    """Names both words, or one, as it pleases."""
    return draw.choice(["poor or meagre", "quickly and swiftly", _likely(prompt, asked, draw)])


def _driven(key: MarksKey, number: int, answer: Answerer, alpha: float = 0.05) -> LotAnswers:
    steps, answers, draw = MarksAudit(key, alpha).steps(number), None, random.Random(number)
    asked = 0
    while not isinstance(step := advance(steps, answers), Done):
        answers = [Answer(answer(query.prompt, asked, draw)) for query in step]
        asked += 1
    return step.value


@pytest.mark.slow
@pytest.mark.parametrize("answer", [_first, _likely, _tires, _both])
def test_a_system_without_the_copy_is_called_in_no_more_often_than_alpha(answer):
    base = MarksKey.fresh(twenty().documents[:1])
    wrong, winnings = 0, 0.0
    draws = 750  # of each, 3,000 in all
    for n in range(draws):
        key = replace(base, seed=n.to_bytes(32, "big"))
        odds = odds_of(key.documents[0], key.drawn[0], _driven(key, 0, answer))
        wrong += odds.p_value <= 0.05
        # Large winnings are rare and make the mean of so few draws vary; cut ones are worth less.
        winnings += min(odds.e_value, 20.0)
    assert binomtest(wrong, draws, 0.05, alternative="greater").pvalue > 1e-3
    assert winnings / draws < 1.2


def test_one_answer_for_all_names_nothing():
    key = twenty()
    asked = _driven(
        key, 0, lambda prompt, *_: "poor meagre thin scant quickly swiftly claimed stated"
    )
    assert asked.named == {}
    assert len(asked.closed) >= 7  # enough that nothing could be decided any more
    assert {answer.way for answer in asked.answers} == {"continue", "choose"}
    assert all(isinstance(answer, LotAnswer) for answer in asked.answers)


# Verdicts.


def _audited(tmp_path: Path, key: MarksKey, system: Callable[[str], str]) -> MarksResult:
    path = tmp_path / "key.json"
    path.unlink(missing_ok=True)
    write_key(path, key)
    return rw.audit_marks(system, path)


def _calls(result: MarksResult) -> tuple[int, int]:
    """How many are called in, of those inside and of the others."""
    half = len(result.documents) // 2
    called = [verdict.decision == "in" for verdict in result.documents]
    return sum(called[:half]), sum(called[half:])


@functools.cache
def twenty() -> MarksKey:
    # One draw of the lots for all machines: 20 documents found by chance at .05 are no fault.
    with mock.patch("os.urandom", lambda size: bytes(range(size))):
        return marked([document(n) for n in range(20)])


@pytest.mark.parametrize(
    "manner",
    [
        {},
        {"says": "Going by the records, the clerk must have written {} there."},
        {"says": "Laut den Unterlagen war es {}."},
        {"filtered": 6},
        {"prior": None},
        {"prior": max, "filtered": 6},
    ],
)
def test_a_reader_of_the_copies_is_found_in_every_manner(tmp_path, manner):
    key = twenty()
    assert _calls(_audited(tmp_path, key, reader(copies(key)[:10], **manner))) == (10, 0)


def test_a_reader_of_the_unmarked_texts_is_not_found(tmp_path):
    key = twenty()
    result = _audited(tmp_path, key, reader([one.text for one in key.documents]))
    assert _calls(result) == (0, 0)
    assert result.log10_e < 2


def test_an_editor_costs_lots_and_a_normaliser_all_of_them(tmp_path):
    key = twenty()
    draw = random.Random(5)

    def edited(share: float) -> list[str]:
        """The copies after an editor took this share of drawn words back."""
        return [
            one.copy([0 if draw.random() < share else choice for choice in drawn])
            for one, drawn in zip(key.documents, key.drawn, strict=True)
        ]

    found, wrong = _calls(_audited(tmp_path, key, reader(edited(0.2)[:10])))
    assert found >= 8
    assert wrong == 0
    assert _calls(_audited(tmp_path, key, reader(edited(1.0)[:10]))) == (0, 0)


def test_marks_of_two_owners_in_one_text(tmp_path):
    first = MarksKey.fresh(twenty().documents[:10])
    shared = copies(first)
    # The second owner draws other words of the first one's copy.
    second = MarksKey.fresh(
        [
            find_lots(
                Document(f"second {n}", text.replace(" winter", " {winter|autumn|spring|summer}")),
                0, word_pool([]), random.Random(n),
            )
            for n, text in enumerate(shared)
        ]
    )  # fmt: skip
    both = reader(copies(second))
    assert _calls(_audited(tmp_path, first, both)) == (5, 5)
    assert _calls(_audited(tmp_path, second, both)) == (5, 5)
    assert _calls(_audited(tmp_path, second, reader(shared))) == (0, 0)


def test_chinese_marks_are_asked_about_in_chinese(tmp_path):
    places = "东西南北上下前后左右"
    text = "".join(
        f"第{a}座桥{a}边的老人在{a}村住了很久并且{{突然|忽然|骤然|猛然}}离开了那里。"
        for a in places
    )
    key = marked([Document("a", text)])
    prompts: list[str] = []
    system = reader(copies(key))
    result = _audited(tmp_path, key, lambda prompt: prompts.append(prompt) or system(prompt))
    assert result.documents[0].decision == "in"
    assert all("哪" in prompt for prompt in prompts)


def test_a_short_document_is_left_out_by_name(tmp_path):
    short = tmp_path / "short.txt"
    short.write_text("A poor woodcutter lived in the forest with his wife and was happy.")
    options = {"key": tmp_path / "k.json", "out": tmp_path / "copies"}
    with (
        pytest.warns(UserWarning, match="left out: short.txt"),
        pytest.raises(InputError) as error,
    ):
        rw.mark([str(short)], **options)
    assert "No document has enough words" in error.value.message
    assert not options["key"].exists()
    long = tmp_path / "long.txt"
    long.write_text(TALE)
    with pytest.warns(UserWarning, match="left out: short.txt"):
        key = rw.mark([str(short), str(long)], **options)
    assert [one.id for one in key.documents] == ["long.txt"]
    assert (tmp_path / "copies" / "long.txt").read_text() == copies(key)[0]


def test_two_documents_of_one_name_are_refused(tmp_path):
    paths: Sequence[Path] = [tmp_path / side / "a.txt" for side in ("left", "right")]
    for path in paths:
        path.parent.mkdir()
        path.write_text(TALE)
    with pytest.raises(InputError, match="Two documents are called"):
        rw.mark([str(p) for p in paths], key=tmp_path / "k", out=tmp_path / "o")


def test_a_level_that_no_lots_can_reach_asks_nothing(tmp_path):
    key = marked([document(0, 3)])
    path = tmp_path / "k.json"
    write_key(path, key)
    result = rw.audit_marks(lambda prompt: prompt, path, alpha=0.001)
    assert result.queries == 0
    assert "right by chance once in 64 times" in result.documents[0].reason
