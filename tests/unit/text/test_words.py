"""Words, their places, and passages of a long text."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwitness.text.words import (
    all_letters,
    as_read,
    core,
    is_unspaced,
    passages,
    split_words,
    telling_tokens,
)


@given(st.text(max_size=200))
def test_words_stand_where_they_say(text: str) -> None:
    words = split_words(text)
    assert all(text[word.start : word.end] == word.text for word in words)
    assert "".join(word.text for word in words) == "".join(text.split())


def test_texts_without_unspaced_scripts_are_split_as_all_others() -> None:
    signs = [chr(code) for code in range(0x250)] + [chr(code) for code in range(0x250, 0x20000, 5)]
    for sign in signs:
        if not is_unspaced(sign) and unicodedata.category(sign) != "Cs":
            alone = f"a{sign}b {sign} ("
            assert split_words(alone) == split_words(f"{alone} \u79c1")[:-1], f"U+{ord(sign):04X}"


def test_unspaced_scripts_are_split_by_character() -> None:
    assert [word.text for word in split_words("私は cat を")] == ["私", "は", "cat", "を"]


@pytest.mark.parametrize(
    ("word", "stem"),
    [("knee,", "knee"), ("“Knee”", "Knee"), ("don't", "don't"), ("...", ""), ("$5.20.", "5.20")],
)
def test_core_drops_punctuation_at_the_ends_only(word: str, stem: str) -> None:
    assert core(word) == stem


@given(st.integers(0, 400), st.integers(16, 60))
def test_passages_cover_the_text_evenly(n: int, most: int) -> None:
    text = " ".join(f"w{i}" for i in range(n))
    parts = passages(text, most, 8)
    sizes = [len(part.split()) for part in parts]
    assert all(8 <= size <= most for size in sizes)
    assert all(part in text for part in parts)
    if n >= 8:
        assert n - sum(sizes) < 8  # only a tail too short to be probed is left


def test_characters_that_are_words_tell_in_pairs() -> None:
    assert telling_tokens("患者 MRI 发烧了, ok") == [
        "患者",
        "者",
        "mri",
        "发烧",
        "烧了",
        "了",
        "ok",
    ]


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("\u4ed6\u8bf4\uff1a\u201c\u597d\u3002\u201d", 3),  # signs belong to the unit before them
        ("\u0e40\u0e01\u0e48\u0e32\u0e19\u0e49\u0e33", 2),  # Thai: a vowel in front and one behind
        ("\u1781\u17d2\u1789\u17bb\u17c6", 1),  # Khmer: a consonant below another
        ("\u1019\u103c\u1014\u103a\u1019\u102c", 2),  # Burmese: a closed syllable
        ("\u0928\u0926\u0940\u0964 \u0936\u0930\u094d\u092e\u093e", 2),  # Hindi
    ],
)
def test_units_of_scripts(text: str, units: int) -> None:
    words = split_words(text)
    assert len(words) == units
    assert all(all_letters(core(word.text)) for word in words)


THAI = (
    "เมื่อวันที่สิบสองเดือนห้าสมชายได้ซ่อมนาฬิกาเรือนเก่าให้แก่วิภาที่ตลาดเชียงใหม่"
    "บัญชีของร้านระบุว่ามีหีบไม้สักอยู่หลายใบและผ้าไหมเปียกฝนจึงต้องทำความสะอาดใหม่"
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ราคา845บาท (โรงเรียน)", ["ราคา", "845", "บาท", "(โรงเรียน)"]),
        ("ເຂົ້າໜຽວແລະປາແດກ", ["ເຂົ້າໜຽວ", "ແລະ", "ປາ", "ແດກ"]),  # Lao, by the model of Thai
        ("ว่า“พ่อแม่”ไป", ["ว่า", "“พ่อ", "แม่”", "ไป"]),
    ],
)
def test_units_of_thai_and_lao_are_joined_to_words(text: str, words: list[str]) -> None:
    assert [word.text for word in split_words(text)] == words


@given(st.integers(0, len(THAI) - 1), st.integers(0, len(THAI)))
def test_a_piece_of_thai_has_the_words_of_the_whole(start: int, end: int) -> None:
    ends = {word.end for word in split_words(THAI)}
    found = {start + word.end for word in split_words(THAI[start:end])}
    inside = range(start + 3, end - 2)
    assert {at for at in ends if at in inside} == {at for at in found if at in inside}


def test_a_text_as_it_is_read() -> None:
    written = "co\u00adoper-\nate \ufb01ne e\u0301\u200b Haus-\nund Hof Nord-\nS\u00fcd"
    assert as_read(written) == "cooperate fine \u00e9 Haus-\nund Hof Nord-\nS\u00fcd"
    assert as_read("plain - \ntext") == "plain - \ntext"


def test_a_text_without_words_has_no_telling_tokens() -> None:
    for text in ("", "\u2019", "\u2026 the of", "\u00a0"):
        assert telling_tokens(text) == []
