"""Hard conditions: what is copied, hidden or personal is found; other words are not."""

from __future__ import annotations

import base64
import random
import re

import pytest

from benchmarks.guard import ALIKE, OTHERWISE
from ragwitness.core.errors import InputError
from ragwitness.synthesis.generator import Fate, Synthesis, checked
from ragwitness.synthesis.guard import GuardConfig, SyntheticGuard
from ragwitness.text.overlap import RunIndex, Vocabulary, overlapping, shared_runs
from ragwitness.text.secrets import Secret
from ragwitness.text.words import same_language

RECORD = (
    "Patient: my son Tom Baker had a runny nose and a sore stomach last week, call 713 853 1234."
    " Doctor: please see a pediatrician, it is most likely a common virus and nothing more."
)
OTHER = "Die Rechnung vom letzten Monat wurde zweimal gestellt und soll bitte storniert werden."
CHINESE = "患者昨天晚上开始发烧并且一直咳嗽没有停止"
SECRETS = [Secret("Tom Baker", "name", "a"), Secret("713-853-1234", "contact", "a")]


def guard(**options: object) -> SyntheticGuard:
    return SyntheticGuard([RECORD, OTHER, CHINESE], SECRETS, GuardConfig(pii="contacts", **options))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("He had a runny nose and a sore stomach last week.", "run"),
        ("he HAD, a <b>runny</b> nose and *a* sore stomach last", "run"),
        ("had a run\u00adny nose and a sore sto\u200cmach last week", "run"),
        ("\uff48\uff41\uff44 a runny nose and a sore stomach last week", "run"),
        ("had a &#114;unny nose and a sore stomach last week", "run"),
        ("Bitte: die Rechnung vom letzten Monat wurde zweimal gestellt, ja.", "run"),
        ("据说患者昨天晚上开始发烧了", "run"),
        ("Ask for TOM  baker.", "secret"),
        ("Ask for Tom\u00adBaker or <i>Tom</i> <i>Baker</i>.", "secret"),
        ("The number is 7138531234.", "secret"),
        ("Write to nobody@example.org about it.", "pii"),
        ("Tom\u200bBaker", "hidden"),
        ("A note: " + base64.b64encode(RECORD.encode()).decode(), "hidden"),
        ("A note: " + base64.b64encode(b"Tom Baker").decode(), "secret"),
        ("bell \x07 rings", "hidden"),
        ("T\u043em B\u0430ker", "secret"),
    ],
)
def test_a_text_that_gives_a_record_away_is_found(text: str, kind: str) -> None:
    found = guard().violation(text)
    assert found is not None
    assert found.kind == kind
    for private in ("Tom", "Baker", "713", "stomach"):
        assert private not in found.reason
    if kind == "secret":  # what rewrites it sees its own text, but no list of secrets
        assert "Baker" not in found.advice


def test_a_short_copy_and_a_shuffled_copy_are_too_similar() -> None:
    short = SyntheticGuard(["take two tablets daily"], (), GuardConfig(pii="contacts", run=3))
    assert short.violation("Take two, daily tablets!").kind == "similarity"
    dropped = " ".join(word for n, word in enumerate(RECORD.split()) if n % 6)
    dropped = dropped.replace("Tom", "").replace("853", "")
    assert guard(run=9).violation(dropped).kind == "similarity"


PADDING = (
    "Everyone is different, and general advice may not suit each person at each place. Rest and"
    " water are often named, and a pharmacist can say more about ordinary remedies. "
)


@pytest.mark.parametrize("every", [3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_whole_record_in_pieces_is_found(every: int, shuffled: bool) -> None:
    rng = random.Random(every)
    words = "".join(c for c in RECORD if not c.isdigit()).replace("Tom Baker", "he").split()
    parts = [words[i : i + every] for i in range(0, len(words), every)]
    if shuffled:
        rng.shuffle(parts)
    broken = " ".join(
        word for part in parts for word in (*part, rng.choice(("well,", "perhaps", "so to say,")))
    )
    found = guard(run=9).violation(f"{PADDING}{broken} {PADDING * 3}")
    assert found is not None
    assert found.kind == "similarity"
    assert "stomach" not in found.reason + found.advice


@pytest.mark.parametrize("how", [*ALIKE, *OTHERWISE])
def test_a_record_is_found_in_what_reads_alike_and_in_nothing_else(how: str) -> None:
    plain = RECORD.replace("Tom Baker", "he").replace(", call 713 853 1234", "")
    dressed = (ALIKE | OTHERWISE)[how](plain)
    found = guard(run=8).violation(f"{PADDING}{dressed} {PADDING}")
    assert (found is not None) == (how in ALIKE)


def test_honest_letters_and_signs_pass() -> None:
    for honest in (
        "Ein na\u00efver Rat \u2013 f\u00fcr \u0141ukasz: 5\u202fmg \u03b2-Blocker,",
        "CO\u2082, x\u00b2, \u00bd.",
        "Well done \u2764\ufe0f and 1\ufe0f\u20e3 more \U0001f600.",
        "\ufeffTake it at 8:00, 12:00, 16:00, 20:00, 0:00, 8:00, 12:00, 16:00, 20:00, 0:00.",
        "Steps: A, B, C, D, E, F, G, H, I, J, K, L, M.",
        "It is sold as \u0410\u043d\u0430\u043b\u044c\u0433\u0438\u043d, or \u7576\u6b78.",
        "Methylchloroisothiazolinone/methylisothiazolinone is a preservative.",
        "Readings of 12, 14, 15, 13 and 120/80, 118/79 over 5 days.",
        "NF\u03baB and TGF\u03b2R1 are active, TNF-\u03b1 and IL-1\u03b2 are not.",
        "Key: A, B, C, D, A, C, B, D, A, A, C, B, D and A.\fPage two, at 5\u200f.",
        "Primer " + "ACGT" * 12 + ", 20 B12 units, H1N1 and O2 at 4am.",
        "=" * 60,
        "R&D at 5 \u20ac, H\u2082O, 37\u00b0C, \u2264 5 \u2192 stop, C:\\temp, 100% cotton, 0x1F.",
        "From Paris \U0001f1eb\U0001f1f7 to Berlin \U0001f1e9\U0001f1ea.",
        "\u60a3\u8005\u611f\u5230\u5934\u75db",  # its script is a record's, its letters are not
    ):
        assert guard().violation(honest) is None, honest


def test_what_copies_may_hold_the_codes_that_its_record_holds() -> None:
    copies = guard(run=0, rouge=1, recall=1)
    code = "Sent " + "a1B2" * 12
    assert guard().violation(code).kind == "hidden"
    assert copies.violation(code) is None
    assert copies.violation("T\u200b is in Room 4").kind == "hidden"


def test_words_of_a_script_with_vowel_signs_are_whole() -> None:
    record = "मेरे पिता को तीन दिन से तेज बुखार है और वे रात में बहुत खांसते हैं। डॉक्टर ने दवा दी है।"
    other = "किताबें पढ़ना मेरा शौक है और मैं हर रविवार पुस्तकालय जाता हूं। वहां नई पत्रिकाएं मिलती हैं।"
    known = SyntheticGuard([record], (), GuardConfig(pii="none"))
    assert known.violation(other) is None
    assert known.violation(f"{other} {record} {other}") is not None


def test_a_layout_carries_nothing() -> None:
    bits = [f"{b:08b}" for b in RECORD.encode()[:20]]
    spaces = "".join("word" + " \u2003"[bit == "1"] for byte in bits for bit in byte)
    tabs = "Fine.\n" + "".join(" \t"[bit == "1"] for byte in bits for bit in byte) + "\n\n\n\nEnd."
    made = [checked(Synthesis("a", Fate.PASSED, text), guard()).text for text in (spaces, tabs)]
    assert made == [" ".join(["word"] * 160), "Fine.\n\nEnd."]


def test_a_record_of_hardly_any_content_stops_nobody() -> None:
    known = SyntheticGuard(
        ["How are you today, doctor, and what is it?"], (), GuardConfig(pii="none")
    )
    assert known.violation(f"{PADDING}Ask your doctor how he was today.") is None


def test_the_share_of_words_is_a_condition_of_its_own() -> None:
    told = "virus common likely pediatrician week last stomach sore nose runny son Doctor see"
    assert guard(run=0, recall=0.5).violation(told).kind == "similarity"
    assert guard(run=0, recall=1).violation(told) is None


@pytest.mark.parametrize(
    "record", ["Zoltan Querfurth is HIV positive", "PIN 4471, safe behind mirror", "Quist"]
)
def test_a_record_of_a_few_words_may_not_stand_in_a_text(record: str) -> None:
    strict = SyntheticGuard([record], (), GuardConfig(pii="none"))
    assert strict.violation(f"{PADDING}{record}. {PADDING}").kind == "run"
    assert strict.violation(f"{PADDING}{PADDING}") is None


@pytest.mark.parametrize(
    "text",
    [
        "A child was unwell for some days; a visit to a doctor for children was advised.",
        "Eine Zahlung ist doppelt verlangt worden.",
        "病人有点不舒服",
        "",
    ],
)
def test_other_words_pass(text: str) -> None:
    assert guard().violation(text) is None


def test_boilerplate_may_be_exempted_by_the_number_of_records_it_stands_in() -> None:
    phrase = "thank you very much for asking your question here today"
    records = [f"{phrase} record {n} about something else {n}" for n in range(4)]
    strict = SyntheticGuard(records, (), GuardConfig(pii="contacts", rouge=1))
    kind = SyntheticGuard(records, (), GuardConfig(pii="contacts", common=4, rouge=1))
    text = f"{phrase}, and this goes on with entirely different words about rivers and boats"
    assert strict.violation(text).kind == "run"
    assert kind.violation(text) is None
    doubled = SyntheticGuard([records[0]] * 4, (), GuardConfig(pii="contacts", common=4, rouge=1))
    assert doubled.violation(text).kind == "run"  # one text four times is still one text
    marked = [f"<b>{record}</b>" for record in records[:2]]  # two records of two forms each are two
    marked = SyntheticGuard(marked, (), GuardConfig(pii="contacts", common=4, rouge=1))
    assert marked.violation(text).kind == "run"


GREETING = "Hello and welcome to our forum, thank you for asking"
SICK = f"{GREETING}. My neighbour Orla lost her lighthouse keys beside the frozen canal on Sunday."
PUBLIC = f"{GREETING}. Please describe the engine noise and when it began."


def test_phrases_of_public_texts_may_be_repeated_and_nothing_of_a_record_beside_them() -> None:
    runs = GuardConfig(pii="none", rouge=1, recall=1)
    strict = SyntheticGuard([SICK], (), runs)
    kind = SyntheticGuard([SICK], (), runs, public=[f"<i>{PUBLIC}</i>"])
    honest = f"{GREETING} about boats. A mill needs wind, a baker needs flour and an oven."
    assert strict.violation(honest).kind == "run"
    assert kind.violation(honest) is None
    # A phrase parts a run, as filler does: what follows it counts from its own first token.
    last = "orla lost her lighthouse keys beside the frozen canal"
    assert kind.violation(f"{GREETING} my neighbour {last[:22]}") is None
    for told in (last, f"{GREETING} my neighbour {last}", SICK):
        assert kind.violation(told).kind == "run"
    # Words of a record that stand in no public text in that order are never freed by it.
    mixed = SyntheticGuard([SICK], (), runs, public=sorted(SICK.split()))
    assert mixed.violation(last).kind == "run"
    # Every other condition holds: secrets and details that a public text holds too, most of all.
    known = SyntheticGuard([SICK], [Secret("Orla", "name", "a")], GuardConfig(), public=[SICK])
    assert known.violation("A letter came for Orla.").kind == "secret"
    assert known.violation(SICK.replace("Orla", "she")).kind == "similarity"


def test_public_texts_that_free_phrases_are_counted() -> None:
    cap = GuardConfig(pii="none")
    told = SyntheticGuard([SICK], (), cap, public=[PUBLIC]).describe()["shared run"]
    assert told == (
        "fewer than 8 tokens beside phrases of 1 public texts, of which alone 0 records are made"
    )
    # A digest of the records that is called public frees them of this condition, and says so.
    told = SyntheticGuard([SICK, OTHER], (), cap, public=[SICK * 2]).describe()["shared run"]
    assert told.endswith("alone 1 records are made")


def test_a_cosine_cap_uses_the_embedder() -> None:
    import numpy as np

    def embed(texts: list[str]) -> np.ndarray:
        return np.array([[1.0, 0.0] if "son" in t else [0.0, 1.0] for t in texts], np.float32)

    cap = GuardConfig(pii="none", cosine=0.9)
    assert SyntheticGuard([RECORD], (), cap, embed).violation("somebody's son").kind == "similarity"
    assert SyntheticGuard([RECORD], (), cap, embed).violation("rivers") is None
    with pytest.raises(InputError, match="needs an embedder"):
        SyntheticGuard([RECORD], (), cap)


def test_the_index_of_runs_finds_what_the_comparison_of_collections_finds() -> None:
    rng, vocabulary = random.Random(1), Vocabulary(str.split)
    words = [f"w{n}" for n in range(12)]
    records = [" ".join(rng.choices(words, k=rng.randrange(0, 60))) for _ in range(40)]
    outputs = [" ".join(rng.choices(words, k=rng.randrange(0, 30))) for _ in range(200)]
    known, said = vocabulary.tokenize(records), vocabulary.tokenize(outputs)
    for n in (1, 2, 3, 4):
        index = RunIndex(known, n)
        met = [index.first(vocabulary.tokenize([text])) is not None for text in outputs]
        assert met == shared_runs(said, known, n).outputs.tolist()
    assert any(met)
    assert not all(met)


def test_a_language_is_told_only_where_there_are_words_enough() -> None:
    english = "The patient is ill and has had a fever since the day before; what is to be done?"
    german = "Der Patient ist krank und hat seit gestern ein hohes Fieber, was ist nun zu tun?"
    assert same_language(english, english.upper())
    assert not same_language(english, german)
    assert not same_language(english, CHINESE)
    assert same_language(english, "aspirin ibuprofen 20 mg")
    assert same_language(english, "")


def test_an_id_may_not_tell_what_a_text_may_not() -> None:
    conditions = guard()
    for named in (
        RECORD[20:120],
        "my-son-had-a-runny-nose-and-a-sore-stomach-last-week",
        "tom_baker",
    ):
        assert conditions.named(named), named
    for named in ("a", "hcm-00017", "2024/invoice_7.txt", "notes of the second week in May"):
        assert not conditions.named(named), named


@pytest.mark.parametrize("how", [None, "strokes", "umlauts"])
def test_a_record_in_pieces_over_texts_does_not_leave_whole(how: str | None) -> None:
    rng = random.Random(4)
    words = ["".join(rng.choices("abdegilmnorstu", k=6)) for _ in range(900)]
    records = [" ".join(words[60 * n : 60 * n + 60]) for n in range(10)]
    conditions = SyntheticGuard(records, (), GuardConfig(pii="none"))

    def piece(record: int, part: int) -> str:
        part_of = records[record].split()[20 * part : 20 * part + 20]
        broken = [" ".join((*part_of[i : i + 4], "perhaps")) for i in range(0, 20, 4)]
        broken = [ALIKE[how](said) for said in broken] if how else broken
        return " ".join((*broken, *words[600 + 20 * part : 620 + 20 * part]))

    texts = [piece(record, part) for part in range(3) for record in range(10)]
    assert all(conditions.violation(text) is None for text in texts)
    assert conditions.together(texts) == [False] * 20 + [True] * 10
    # A third again is no further piece, and what may copy is not held against records.
    assert conditions.together([piece(0, 0), piece(0, 0), piece(0, 1)]) == [False] * 3
    copies = SyntheticGuard(records, (), GuardConfig(run=0, rouge=1, recall=1, pii="none"))
    assert copies.together(texts) == [False] * 30


def test_public_texts_that_read_as_records_are_named() -> None:
    plain = RECORD + " He should drink much, sleep long, stay at home and come again on Monday."
    for how in ("soft hyphens", "underscores", "strokes", "accents"):
        assert overlapping([ALIKE[how](plain)], [plain, OTHER]) == [0], how
    every = " ".join(f"{word} so" if n % 9 == 8 else word for n, word in enumerate(plain.split()))
    assert overlapping([OTHER[:40], every + PADDING * 6], [plain]) == [1]
    assert not overlapping([PADDING * 40], [plain])


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize(
    "said",
    [
        base64.b64encode(b"Tom Baker").decode(),
        b"Tom Baker".hex(),
        "<b>Tom</b><td>Baker</td>",
    ],
)
def test_a_secret_in_a_code_is_a_secret(said: str, copies: bool) -> None:
    some = {"run": 0, "rouge": 1.0, "recall": 1.0} if copies else {}
    found = guard(**some).violation(f"Ask for {said} at the desk.")
    assert found is not None
    assert found.kind == "secret"


def test_a_cosine_of_nothing_is_no_condition() -> None:
    for cosine in (0, 0.0, -0.5, 1.5):
        with pytest.raises(InputError, match="above 0"):
            GuardConfig(cosine=cosine)


def test_digits_of_another_script_hide_no_record() -> None:
    held = SyntheticGuard(
        ["Natrium 138, Kalium 41, Kreatinin 97, Harnstoff 62, Albumin 388, CRP 174, Ferritin 512"],
        (),
        GuardConfig(pii="none"),
    )
    said = (
        "Werte ١٣٨ und ٤١ und ٩٧, dann ٦٢, ٣٨٨, ١٧٤ und ٥١٢ bei Natrium, Kalium, Albumin, Ferritin"
    )
    assert held.violation(f"{PADDING}{said} {PADDING}") is not None


def test_unrelated_texts_of_single_characters_pass_and_copies_do_not() -> None:
    signs, rng = [chr(0x4E00 + n) for n in range(700)], random.Random(8)
    records = ["".join(rng.sample(signs, 60)) for _ in range(60)]
    held = SyntheticGuard(records, (), GuardConfig(pii="none"))
    assert not any(held.violation("".join(rng.sample(signs, 600))) for _ in range(20))
    around = "".join(rng.sample(signs, 300))
    for every in (1, 2, 3, 5):
        parts = re.findall(f".{{1,{every}}}", records[11])
        assert held.violation(f"{around}{'哈'.join(parts)}{around}") is not None
