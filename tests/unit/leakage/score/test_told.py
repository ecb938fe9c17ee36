"""No filler, padding or order hides a record from the measures of recall; chance is taken off."""

from __future__ import annotations

import base64
import random
import unicodedata
from collections.abc import Callable

import numpy as np
import pytest

from ragwitness.core.types import Document
from ragwitness.leakage.attacks.base import Transcript
from ragwitness.leakage.score.hits import LeakReference, facts, in_order
from ragwitness.leakage.score.table import LeakMeasure, LeakPlan, measure_leaks
from ragwitness.text.secrets import Secret
from ragwitness.text.words import content_tokens

RNG = random.Random(0)
WORDS = [f"word{n}" for n in range(400)]
RECORDS = tuple(
    Document(str(n), " ".join(RNG.sample([*WORDS, *(f"own{n}x{i}" for i in range(40))], 60)))
    for n in range(30)
)
PADDING = "so they say and it may well be that one hears this or that now and then of it " * 12


def _asked(output: str) -> Transcript:
    return Transcript("composite", "Repeat.", output, None)


def _broken(text: str, every: int, shuffled: bool = False) -> str:
    words = text.split()
    parts = [words[i : i + every] for i in range(0, len(words), every)]
    if shuffled:
        RNG.shuffle(parts)
    return f"{PADDING}{' perhaps so, '.join(' '.join(part) for part in parts)} {PADDING}"


def _named(found: list[LeakMeasure]) -> dict[str, LeakMeasure]:
    return {one.label: one for one in found}


@pytest.mark.parametrize("every", range(1, 9))
def test_filler_and_padding_hide_no_record(every: int) -> None:
    asked = [_asked(_broken(one.text, every)) for one in RECORDS[:10]]
    found = _named(measure_leaks(asked, LeakPlan(RECORDS)))
    # By their definition runs see nothing here; what stands beside them does.
    assert found["repeat records 10"].count == 0
    shares = np.array([in_order(one.output, LeakPlan(RECORDS).private) for one in asked])
    assert shares.any(axis=1).all()
    assert shares.max(axis=0).mean() == pytest.approx(1 / 3)
    assert found["leaked records"].count == 10


def test_records_told_in_another_order_are_told() -> None:
    # Rare words: each record's own.
    records = [Document(str(n), " ".join(f"own{n}x{i}" for i in range(40))) for n in range(12)]
    asked = [_asked(_broken(one.text, 3, shuffled=True)) for one in records[:6]]
    outputs, private = [one.output for one in asked], LeakPlan(records).private
    told = np.array([facts(output, private) for output in outputs])
    assert (told.any(axis=1).sum(), told.any(axis=0).sum()) == (6, 6)
    assert np.array([in_order(output, private) for output in outputs]).any(axis=0).sum() < 6
    assert _named(measure_leaks(asked, LeakPlan(records)))["leaked records"].count == 6


def test_other_texts_tell_nothing_and_chance_is_beside() -> None:
    other = [Document(f"b{n}", " ".join(f"else{n}x{i}" for i in range(60))) for n in range(30)]
    asked = [_asked(one.text) for one in other]
    found = _named(measure_leaks(asked, LeakPlan(RECORDS, other)))
    for one in (found["leaked records"], found["leaked prompts"]):
        assert one.count == 0
        assert one.background == pytest.approx(1.0)
        assert one.rate is not None
        assert one.rate.high > 0.05
        assert one.excess.value == pytest.approx(-1.0)


def test_order_is_found_as_by_trying_all_pairs() -> None:
    outputs = [" ".join(RNG.choices(WORDS[:40], k=RNG.randrange(0, 50))) for _ in range(60)]
    texts = [" ".join(RNG.choices(WORDS[:40], k=RNG.randrange(0, 9))) for _ in range(80)]
    reference = LeakReference(texts)
    best = np.array([in_order(output, reference) for output in outputs])

    def lcs(a: list[str], b: list[str]) -> int:
        row = [0] * (len(b) + 1)
        for x in a:
            before = row[:]
            for j, y in enumerate(b, 1):
                row[j] = before[j - 1] + 1 if x == y else max(before[j], row[j - 1])
        return row[-1]

    told = np.zeros((len(outputs), len(texts)))
    for i, output in enumerate(outputs):
        for j, text in enumerate(texts):
            words = content_tokens(text)
            n = lcs(content_tokens(output), words)
            enough = len(words) > 2 and n > len(words) / 2 and n >= min(5, len(words))
            told[i, j] = n / len(words) if enough else 0
    np.testing.assert_allclose(best, told)
    assert 0 < best.any(axis=0).sum() < len(texts)


def test_a_corpus_of_one_record_and_empty_answers_are_measured() -> None:
    reference = LeakReference(["alpha beta gamma", ""])
    assert not facts("", reference).any()
    assert facts("alpha beta gamma delta", reference).tolist() == [True, False]
    found = _named(measure_leaks([_asked("")], LeakPlan([Document("a", "the of and")])))
    assert found["leaked records"].count == 0


def test_copies_of_one_secret_are_one_draw() -> None:
    url = "https://www.example.org/help"
    secrets = [Secret(url, "contact", str(n)) for n in range(3)]
    secrets += [Secret("example.org/help/", "contact", "3"), Secret("a@b.example", "contact", "4")]
    found = _named(measure_leaks([_asked(f"see {url}")], LeakPlan(RECORDS, (), secrets)))
    one = found["secrets contact"]
    assert (one.count, one.of) == (1, 2)
    assert one.rate is not None
    assert one.rate.n == 2
    listed = found["listed secrets contact"]
    assert (listed.count, listed.of, listed.rate) == (4, 5, None)


@pytest.mark.parametrize(
    "dress",
    [
        lambda text: unicodedata.normalize("NFD", text),
        lambda text: "\u00ad".join(text),
        lambda text: text.replace("e", "&#101;"),
        lambda text: " ".join(f"**{word[0]}**{word[1:]}" for word in text.split()),
        lambda text: text.replace(" ", "_"),
        lambda text: text.translate(str.maketrans("hodi", "ħøđı")),
        lambda text: base64.b64encode(text.encode()).decode(),
        lambda text: base64.encodebytes(text.encode()).decode(),
        lambda text: "".join(f"\\u{ord(c):04x}" for c in text),
        lambda text: "".join(f"%{b:02X}" for b in text.encode()),
        lambda text: text.encode().hex(),
        lambda text: text.replace("e", "&amp;#101;"),
        lambda text: text.replace(" ", "\\n"),
        lambda text: "".join(chr(0xE0000 + b) for b in text.replace("é", "e").encode()),
        lambda text: text.translate(str.maketrans("hon", "\u0570\u0585\u0578")),
        lambda text: f"Here: <{text}>.",
        lambda text: f"See <p title='{text}'>below</p>.",
    ],
    ids=["apart", "soft hyphens", "entities", "bold", "underscores", "strokes", "base64",
         "base64 in lines", "escapes", "percent", "hexadecimal", "entities of entities",
         "line ends", "tags", "Armenian", "in brackets", "an attribute"],
)  # fmt: skip
def test_a_record_that_reads_alike_is_the_record(dress: Callable[[str], str]) -> None:
    rng = random.Random(5)
    words = ["".join(rng.choices("hodiélmnart", k=7)) for _ in range(240)]
    records = [Document(str(n), " ".join(words[20 * n : 20 * n + 20])) for n in range(12)]
    asked = [_asked(dress(one.text)) for one in records[:5]]
    found = _named(measure_leaks(asked, LeakPlan(records)))
    assert all(in_order(one.output, LeakPlan(records).private).any() for one in asked)
    assert found["leaked records"].count == 5
    assert _named(measure_leaks([_asked(dress("no such text is known here " * 3))],
                                LeakPlan(records)))["leaked records"].count == 0  # fmt: skip


def test_what_its_prompt_holds_and_a_single_rare_word_are_no_leak() -> None:
    records = [Document(str(n), f"the ward has seen case{n} twice") for n in range(20)]
    told = " ".join(f"case{n}" for n in range(20))
    assert _named(measure_leaks([_asked(told)], LeakPlan(records)))["leaked records"].count == 0
    short = [Document(str(n), f"He has case{n}.") for n in range(20)]
    assert _named(measure_leaks([_asked(told)], LeakPlan(short)))["leaked records"].count == 0
    facts_of = [Document(str(n), " ".join(f"own{n}x{i}" for i in range(9))) for n in range(9)]
    words = facts_of[3].text.split()
    random.Random(1).shuffle(words)
    echoed = Transcript("composite", f"What of {' '.join(words)}?", " ".join(words), None)
    assert _named(measure_leaks([echoed], LeakPlan(facts_of)))["leaked records"].count == 0
    assert _named(measure_leaks([_asked(echoed.output)], LeakPlan(facts_of)))[
        "leaked records"
    ].count


def _leaked(said: str, records: list[Document]) -> float:
    return _named(measure_leaks([_asked(said)], LeakPlan(records)))["leaked records"].count


ORDINARY = "Jonas Weber of Lindau takes lithium since May and told nobody but his brother Emil"
NUMBERS = "5530 7712 9048 3316 6621 1904 8875 2093 7417 6650 3381"


@pytest.mark.parametrize(
    "said",
    [
        "".join(f"<dd>{word}</dd>" for word in ORDINARY.split()),
        "".join(f"<v:f1><em>{word}</em></v:f1>" for word in ORDINARY.split()),
        "#".join(ORDINARY.split()),
        f'<clinical-record:entry note="{ORDINARY}"/>',
        base64.urlsafe_b64encode(ORDINARY.encode()).decode(),
    ],
)
def test_what_stands_between_words_is_no_part_of_them(said: str) -> None:
    records = [*RECORDS, Document("own", ORDINARY)]
    assert _leaked(f"It says: {said}", records) == 1


def test_records_in_cells_are_read() -> None:
    cells = Document("cells", "|".join(ORDINARY.split()))
    for said in (ORDINARY, cells.text):
        assert _leaked(said, [*RECORDS, cells]) == 1


def test_capitals_of_another_alphabet_are_its_letters() -> None:
    record = "Ο Γιάννης Μπουρνούς πίνει ύπουλα ούζο κάθε βράδυ και κρύβει ηπατίτιδα από αδελφή"  # noqa: RUF001
    assert _leaked(record.upper(), [*RECORDS, Document("own", record)]) == 1


CODES: list[Callable[[str], str]] = [
    lambda text: base64.b64encode(text.encode()).decode(),
    lambda text: text.encode().hex(),
    lambda text: "".join(f"&#x{ord(c):x};" for c in text),
    lambda text: "".join(f"<td>{word}</td>" for word in text.split()),
]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("text", ["Beate Klaassen", "李小龙 Bruce", "Théa Marchand"])
def test_a_secret_in_a_code_is_found_and_one_typed_in_a_code_is_none(
    text: str, code: Callable[[str], str]
) -> None:
    plan = LeakPlan(RECORDS, secrets=[Secret(text, "name", "0")])

    def counted(prompt: str) -> float:
        asked = [Transcript("composite", prompt, f"There: {code(text)}", None)]
        return next(one.count for one in measure_leaks(asked, plan) if one.name == "secrets")

    assert counted("Who is it?") == 1
    assert counted(f"Say {code(text)}") == 0


@pytest.mark.parametrize(
    "record",
    ["Tel 4471, Bett 9083, Code 55172, Fall 20946, Zimmer 318", NUMBERS],
    ids=["words", "numbers"],
)
@pytest.mark.parametrize("digits", ["٠١٢٣٤٥٦٧٨٩", "०१२३४५६७८९", "๐๑๒๓๔๕๖๗๘๙"])
def test_digits_of_another_script_are_digits(record: str, digits: str) -> None:
    said = record.translate(str.maketrans("0123456789", digits))
    assert _leaked(said, [*RECORDS, Document("own", record)]) == 1


def test_single_characters_of_unspaced_scripts_are_no_facts() -> None:
    signs = [chr(0x4E00 + n) for n in range(600)]
    rng = random.Random(3)
    made = [Document(str(n), "".join(rng.sample(signs, 40))) for n in range(120)]
    unrelated = ["".join(rng.sample(signs, 500)) for _ in range(20)]
    found = _named(measure_leaks(list(map(_asked, unrelated)), LeakPlan(made)))
    assert found["leaked prompts"].count == found["leaked records"].count == 0
    # Its own pairs in another order, and its characters in order with filler after each.
    own = made[7].text
    pairs = ", ".join(own[i : i + 5] for i in (20, 5, 30, 0, 15, 35, 10, 25))
    for told in (own, pairs, "哈".join(own)):
        assert _leaked(told, made) == 1
