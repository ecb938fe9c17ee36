"""The reader of mask answers: every dress an answer comes in, and prose."""

import pytest

from ragwitness.core.types import Answer
from ragwitness.membership.methods.mba.response_parsing import (
    is_declined,
    is_right,
    normalise,
    read_answers,
)
from ragwitness.membership.response_parsing.replies import read_answer

_WORDS = {1: "pain", 2: "2.5", 3: "canestan", 4: "follow-up"}

_DRESSED = {
    "as asked": "[Mask_1]: pain\n[Mask_2]: 2.5\n[Mask_3]: canestan\n[Mask_4]: follow-up",
    "one line": "[Mask_1]: pain [Mask_2]: 2.5 [Mask_3]: canestan [Mask_4]: follow-up",
    "commas": "[Mask_1]: pain, [Mask_2]: 2.5, [Mask_3]: canestan, [Mask_4]: follow-up.",
    "dash": "Mask 1 - pain\nMask 2 - 2.5\nMask 3 - canestan\nMask 4 - follow-up",
    "bold": "**[Mask_1]:** pain\n**[Mask_2]:** 2.5\n**[Mask_3]:** canestan\n"
    "**[Mask_4]:** follow-up",
    "bold words": "- [Mask_1]: **pain**\n- [Mask_2]: **2.5**\n- [Mask_3]: **canestan**\n"
    "- [Mask_4]: **follow-up**",
    "quotes": "\"[Mask_1]: pain\"\n\"[Mask_2]: '2.5'\"\n\"[Mask_3]: \u201ccanestan\u201d\"\n"
    "\"[Mask_4]: `follow-up`\"",
    "equals": "MASK_1 = pain; MASK_2 = 2.5; MASK_3 = canestan; MASK_4 = follow-up",
    "arrow": "mask1 -> pain\nmask2 \u2192 2.5\nmask3 => canestan\nmask4 -> follow-up",
    "is": "Mask 1 is pain.\nMask 2 is 2.5.\nMask 3 is the canestan.\nMask 4 is follow-up.",
    "no separator": "[Mask_1] pain\n[Mask_2] 2.5\n[Mask_3] canestan\n[Mask_4] follow-up",
    "below": "[Mask_1]:\npain\n\n[Mask_2]:\n2.5\n\n[Mask_3]:\ncanestan\n\n[Mask_4]:\nfollow-up",
    "brackets": "[Mask_1]: [pain]\n[Mask_2]: [2.5]\n[Mask_3]: <canestan>\n[Mask_4]: (follow-up)",
    "answer_i": "[Mask_1]: answer_1: pain\n[Mask_2]: answer_2: 2.5\n[Mask_3]: answer_3: canestan"
    "\n[Mask_4]: answer_4: follow-up",
    "preface": "Sure! Here are the masks:\n\n[Mask_1]: pain\n[Mask_2]: 2.5\n[Mask_3]: canestan\n"
    "[Mask_4]: follow-up\n\nLet me know if you need more.",
    "numbers": "1. pain\n2. 2.5\n3. canestan\n4. follow-up",
    "parentheses": "(1) pain\n(2) 2.5\n(3) canestan\n(4) follow-up",
    "numbers in bold": "**1.** pain\n**2.** 2.5\n**3.** canestan\n**4.** follow-up",
    "numbers with colons": "1: pain\n2: 2.5\n3: canestan\n4: follow-up",
    "numbers inline": "1. pain 2. 2.5 3. canestan 4. follow-up",
    "numbered labels": "1. [Mask_1]: pain\n2. [Mask_2]: 2.5\n3. [Mask_3]: canestan\n"
    "4. [Mask_4]: follow-up",
    "json": '{"Mask_1": "pain", "Mask_2": 2.5, "Mask_3": "canestan", "Mask_4": "follow-up"}',
    "json labels": '{"[Mask_1]": "pain", "[Mask_2]": "2.5", "[Mask_3]": "canestan",'
    ' "[Mask_4]": "follow-up"}',
    "json fenced": '```json\n{"answers": {"1": "pain", "2": "2.5", "3": "canestan",'
    ' "4": "follow-up"}}\n```',
    "json rows": '[{"mask": "Mask_1", "answer": "pain"}, {"mask": "Mask_2", "answer": "2.5"},'
    ' {"mask": 3, "answer": "canestan"}, {"Mask_4": "follow-up"}]',
    "json rows with labels": '[{"mask": "[Mask_1]", "answer": "pain"}, {"mask": "[Mask_2]",'
    ' "answer": "2.5"}, {"mask": "[Mask_3]", "answer": "canestan"},'
    ' {"mask": "[Mask_4]", "answer": "follow-up"}]',
    "arrays behind labels": '[Mask_1]: ["pain"]\n[Mask_2]: [2.5]\n[Mask_3]: ["canestan"]\n'
    '[Mask_4]: ["follow-up"]',
    "json list": 'Answers: ["pain", "2.5", "canestan", "follow-up"]',
    "lines": "pain\n2.5\ncanestan\nfollow-up",
    "bullets": "Here they are:\n- pain\n- 2.5\n- canestan\n- follow-up",
    "list": "pain, 2.5, canestan, follow-up",
    "labels behind": "pain (Mask_1), 2.5 (Mask_2), canestan (Mask_3), follow-up (Mask_4)",
    "xml": "<mask_1>pain</mask_1><mask_2>2.5</mask_2><mask_3>canestan</mask_3><mask_4>follow-up"
    "</mask_4>",
    "unnumbered labels": "[Mask]: pain\n[Mask]: 2.5\n[Mask]: canestan\n[Mask]: follow-up",
    "html": "<ol><li>[Mask_1]: <b>pain</b></li><li>[Mask_2]: 2.5</li><li>[Mask_3]: canestan"
    "</li><li>[Mask_4]: follow-up</li></ol>",
    "html breaks": "[Mask_1]: pain<br>[Mask_2]: 2.5<br/>[Mask_3]: canestan<br>[Mask_4]: follow-up",
}  # fmt: skip


@pytest.mark.parametrize("dress", _DRESSED)
def test_the_same_four_answers_in_any_dress(dress: str) -> None:
    found = read_answers(_DRESSED[dress], 4)
    assert found.keys() == _WORDS.keys()
    assert all(is_right(found[n], (word,)) for n, word in _WORDS.items())


@pytest.mark.parametrize(
    "prose",
    [
        "",
        " \n ",
        "The patient should rest and drink plenty of water, then see a doctor.",
        "You should wear a mask 3 times a day and change it.",
        "1. You should rest for at least two weeks.\n2. You should drink a lot of water.",
        "I took pill number 2. It was 3.5 mg.",
        "[Mask_1] stands in a text that somebody says again without an answer to it",
        "[]{}[[[",
        '{"note": "nothing"}',
        "10:30",
    ],
)
def test_prose_gives_nothing(prose: str) -> None:
    found = read_answers(prose, 4)
    assert found == {}


def test_the_first_answer_to_a_mask_counts() -> None:
    found = read_answers("[Mask_1]: pain\n[Mask_1]: rash\n[Mask_2]: ear\n[Mask_2]: ear", 3)
    assert found == {1: "pain", 2: "ear"}


_TRUTH = {1: "fatigue", 2: "165/89", 3: "ibuprofen", 4: "Boston", 5: "twice"}
_MASKED = (
    "Patient: I have chronic [Mask_1] and my pressure was [Mask_2]. I took [Mask_3] in [Mask_4]"
    " [Mask_5] a day."
)
_FORMS = {
    "a thought that names the masks": "<think>\n[Mask_1]: tiredness? [Mask_2]: a pressure."
    " [Mask_3]: a drug. [Mask_4]: a city. [Mask_5]: a number.\n</think>\n{labels}",
    "a draft without tags": "Let me think. [Mask_1]: tiredness, [Mask_2]: 120, [Mask_3]: aspirin,"
    " [Mask_4]: Rome, [Mask_5]: once.\n\nFinal answers:\n{labels}",
    "the question first": _MASKED + "\n\n{labels}",
    "the text filled in": "{filled}",
    "the text filled in after a preamble": "Sure, here is the completed text:\n\n{filled}",
    "filled in, in bold": "{bold}",
    "filled in, in brackets": "{brackets}",
    "filled in, labelled": "{inside}",
    "the words around": "[Mask_1]: chronic fatigue\n[Mask_2]: pressure was 165/89\n[Mask_3]: took"
    " ibuprofen\n[Mask_4]: in Boston\n[Mask_5]: twice a day",
    "escaped": "\\[Mask\\_1\\]: fatigue\n\\[Mask\\_2\\]: 165/89\n\\[Mask\\_3\\]: ibuprofen\n"
    "\\[Mask\\_4\\]: Boston\n\\[Mask\\_5\\]: twice",
    "labels in German": "{labels:Maske}",
    "labels in French": "{labels:Masque}",
    "labels in Chinese": "{labels:\u63a9\u7801}",
    "labels of another word": "{labels:Blank}",
    "a table with bare numbers": "| # | Answer |\n|---|---|\n| 1 | fatigue |\n| 2 | 165/89 |\n"
    "| 3 | ibuprofen |\n| 4 | Boston |\n| 5 | twice |",
    "should be": "{joined: should be }",
    "refers to": "{joined: refers to }",
    "steht f\u00fcr": "{joined: steht f\u00fcr }",
    "can be filled with": "{joined: can be filled with }",
    "Chinese labels and colons": "{joined:\uff1a}",
    "a reason in brackets": "1. fatigue (says the text)\n2. 165/89 (a pressure)\n3. ibuprofen\n"
    "4. Boston (a city)\n5. twice",
    "filled in, labels behind": "{behind}",
    "lines in a field of JSON": '{{"answer": "{escaped}"}}',
    "nested JSON": '{{"masks": {{"[Mask_1]": {{"answer": "fatigue"}}, "[Mask_2]": {{"answer":'
    ' "165/89"}}, "[Mask_3]": {{"answer": "ibuprofen"}}, "[Mask_4]": {{"answer": "Boston"}},'
    ' "[Mask_5]": {{"answer": "twice"}}}}}}',
    "one sentence": "The masks are fatigue, 165/89, ibuprofen, Boston and twice.",
    "alternatives": "[Mask_1]: tiredness/fatigue\n[Mask_2]: 165/89\n[Mask_3]: ibuprofen (or"
    " paracetamol)\n[Mask_4]: Boston\n[Mask_5]: twice",
    "JSON in a fence": '```json\n{{"Mask_1": "fatigue", "Mask_2": "165/89", "Mask_3": "ibuprofen",'
    ' "Mask_4": "Boston", "Mask_5": "twice"}}\n```',
}  # fmt: skip


class _Labels(str):
    """Formats as labelled answers, under the label's word where one is named."""

    def __format__(self, word: str) -> str:
        rows = [f"[{word or 'Mask'}_{number}]: {said}" for number, said in _TRUTH.items()]
        return "\n".join(rows)


class _Joined(str):
    """Formats as labelled answers with words between label and answer."""

    def __format__(self, words: str) -> str:
        return ", ".join(f"[Mask_{number}]{words}{said}" for number, said in _TRUTH.items())


def _filled(pattern: str) -> str:
    text = _MASKED
    for number, word in _TRUTH.items():
        text = text.replace(f"[Mask_{number}]", pattern.format(n=number, w=word))
    return text


@pytest.mark.parametrize("form", _FORMS)
def test_five_right_answers_are_hits_in_every_form_of_chat_models(form: str) -> None:
    said = _FORMS[form].format(
        labels=_Labels(), joined=_Joined(), filled=_filled("{w}"), bold=_filled("**{w}**"),
        brackets=_filled("[{w}]"), inside=_filled("[Mask_{n}: {w}]"),
        behind=_filled("{w} [Mask_{n}]"), escaped=f"{_Labels():}".replace("\n", "\\n"),
    )  # fmt: skip
    text = read_answer(Answer(said)).text
    found = read_answers(text, 5, _MASKED)
    assert [n for n, word in _TRUTH.items() if not is_right(found[n], (word,))] == []


@pytest.mark.parametrize(
    "echo",
    [
        _MASKED,
        f'You should answer:\n\n"{_MASKED}"',
        _MASKED[:60],
        "Patient: [Mask_1]\n[Mask_2]. I took [Mask_3]\n[Mask_4]\n[Mask_5] a day.",
        "The mask in question is the Mask_1 at the clinic of the town",
    ],
)
def test_the_masked_text_said_again_is_not_read_and_never_wrong(echo: str) -> None:
    found = read_answers(echo, 5, _MASKED)
    assert found == {}


def test_a_sentence_under_the_wrong_label_answers_the_mask_that_it_fills() -> None:
    said = "[Mask_1]: my pressure was 165/89.\n[Mask_2]: I took ibuprofen in Boston"
    found = read_answers(said, 5, _MASKED)
    assert [n for n in (2, 3) if is_right(found[n], (_TRUTH[n],))] == [2, 3]


def test_a_text_that_is_filled_in_part_gives_what_it_fills() -> None:
    said = "I have chronic fatigue and my pressure was [Mask_2]. I took ibuprofen in Rome"
    found = read_answers(said, 5, _MASKED)
    assert {n: given for n, given in found.items() if n < 4} == {1: "fatigue", 3: "ibuprofen"}


def test_masks_that_do_not_exist_are_counted_not_read() -> None:
    found = read_answers("[Mask_0]: pain\n[Mask_2]: ear\n[Mask_11]: rash", 3)
    assert list(found) == [2]
    assert read_answers("[Mask_7]: pain", 3) == {}


def test_of_many_words_the_first_counts_and_is_remembered() -> None:
    found = read_answers("[Mask_1]: the labrum of the hip, I think\n[Mask_2]: ear", 2)
    assert is_right(found[1], ("labrum",), short=0)
    assert not is_right(found[1], ("hip",), short=0)


def test_an_answer_of_nothing_is_no_answer() -> None:
    found = read_answers("[Mask_1]:\n[Mask_2]: ear\n[Mask_3]: **", 3)
    assert list(found) == [2]


def test_hostile_text_is_read_in_time() -> None:
    for text in ("[Mask_" * 9_000, "**" * 9_000, "mask 1 is not " * 3_000, "\n" * 9_000):
        read_answers(text, 4, "a [Mask_1] b [Mask_2] " * 40)
    for text in ("[" * 60_000, " " * 60_000 + "x", "<a" * 30_000, "1. " * 20_000, "&amp;" * 9_000):
        assert read_answers(text, 4) == {}


@pytest.mark.parametrize(
    ("said", "true", "hit"),
    [
        ("Pain", "pain", True),
        ("patient\u2019s", "patient's", True),
        ("follow up", "follow-up", True),
        ("Follow\u2011up", "follow-up", True),
        ("5 mg", "5mg", True),
        ("\uff15mg", "5mg", True),
        ("2.5", "25", False),
        ("2.5", "2.5", True),
        ("pain relief", "pain", True),
        ("severe pain", "pain", True),
        ("took the pain relief home", "pain relief", True),
        ("tiredness/pain", "pain", True),
        ("pain (or rash)", "rash", True),
        ("165/89", "165", False),
        ("one two three four five six seven eight nine ten pain", "pain", False),
        ("the pain", "pain", True),
        ("STRASSE", "straße", True),
        ("猫", "猫", True),
        ("犬", "猫", False),
        ("...", "pain", False),
        ("paint", "pain", False),
    ],
)
def test_what_counts_as_the_word(said: str, true: str, hit: bool) -> None:
    found = read_answers(f"[Mask_1]: {said}", 1)
    assert (bool(found) and is_right(found[1], (true,))) is hit


def test_either_spelling_is_right() -> None:
    for word in ("nearly", "nearlt"):
        assert is_right(word, ("nearlt", "nearly"))


def test_normalising_twice_changes_nothing() -> None:
    for text in ("Follow-Up", "2,500.5 mg", "na\u00efve", "\u0939\u093f\u0928\u094d\u0926\u0940"):
        assert normalise(normalise(text)) == normalise(text)
    assert normalise("\u0939\u093f\u0928\u094d\u0926\u0940") != normalise("\u0939\u0928\u0926")


@pytest.mark.parametrize(
    ("said", "declined"),
    [("unknown", True), ("N/A", True), ("I don\u2019t know", True), ("not stated", True),
     ("cannot be determined", True), ("Not provided in the context", True), ("pain", False),
     ("notable", False)],
)  # fmt: skip
def test_a_target_that_does_not_know(said: str, declined: bool) -> None:
    assert is_declined(read_answers(f"[Mask_1]: {said}", 1)[1]) is declined


@pytest.mark.parametrize(("joined", "read"), [(1, set()), (2, {1, 3}), (3, {1, 2, 3})])
def test_words_that_open_at_least_half_of_the_answers_join_label_and_answer(joined, read) -> None:
    said = dict.fromkeys((1, 3, 2)[:joined], "refers to")
    lines = (f"So here [Mask_{n}] {said.get(n, f'word{n} unlike others')} pain" for n in _WORDS)
    assert {*read_answers("\n".join(lines), 4)} == read


def test_words_that_open_two_answers_of_five_are_part_of_them() -> None:
    openings = {1: "refers to", 3: "refers to"}
    lines = (
        f"So here [Mask_{n}] {openings.get(n, f'word{n} unlike others')} pain" for n in range(1, 6)
    )
    assert read_answers("\n".join(lines), 5) == {}
