"""Words, their places, and passages of a long text."""

import base64
import binascii
import json
import re
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwitness.text.words import (
    core,
    decoded,
    passages,
    readings,
    seen,
    split_words,
    telling_tokens,
    unaccented,
)


@given(st.text(max_size=200))
def test_words_stand_where_they_say(text: str) -> None:
    words = split_words(text)
    assert all(text[word.start : word.end] == word.text for word in words)
    assert "".join(word.text for word in words) == "".join(text.split())


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


TOLD = "The girl Zoë Lang fainted twice in March after a bee sting and carries adrenaline"


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "code",
    [
        lambda text: "".join(f"\\u{{{ord(c):x}}}" for c in text),
        lambda text: re.sub("[a-z]", lambda c: f"\\N{{LATIN SMALL LETTER {c[0].upper()}}}", text),
        lambda text: "".join(f"\\char{ord(c)} " for c in text),
        lambda text: "".join(f"\\'{b:02x}" for b in text.encode()),
        lambda text: "".join(f"\\{ord(c):x} " for c in text),
        lambda text: "&".join(f"CHAR({ord(c)})" for c in text),
        lambda text: "".join(f"<{ord(c)}>" for c in text),
        lambda text: "; ".join(str(list(word.encode())) for word in text.split()),
        lambda text: "".join(f"{b:08b}" for b in text.encode()),
        lambda text: "/".join(word.encode().hex() for word in text.split()),
        lambda text: json.dumps(list(map(_base64, text.split()))),
        lambda text: "; ".join(map(_base64, text.split())),
        lambda text: "\n".join(f"{n}) {p}" for n, p in
                               enumerate(re.findall(".{1,11}", _base64(text)))),
        lambda text: _base64(_base64(text)),
        lambda text: _base64(text.encode().hex()),
        lambda text: "".join(binascii.b2a_uu(text.encode()[i : i + 45]).decode()
                             for i in range(0, len(text.encode()), 45)),
    ],
    ids=["braces", "names", "TeX", "RTF", "CSS", "CHAR", "brackets", "lists", "bits", "hex",
         "JSON", "words", "numbered", "twice", "hex within", "uu"],
)  # fmt: skip
def test_codes_say_their_text_whatever_parts_them(code: Callable[[str], str]) -> None:
    for said in (f"See below.\n{code(TOLD)}", f"It is 12, and this:\n{code(TOLD)}\nSo far."):
        words = set(re.findall(r"\w{4,}", " ".join(readings(said))))
        assert len(words & set(re.findall(r"\w{4,}", TOLD))) >= 7, said


def test_codes_are_read_where_they_stand() -> None:
    some = [word if n % 2 else _base64(word) for n, word in enumerate(TOLD.split())]
    assert decoded(" ".join(some))[0] == TOLD
    plain = (
        "Of 240 girls 12 fainted in 1998, 2004 and 2011; mean 120/80, 118/76, an added bad deed."
    )
    assert len("".join(decoded(plain))) < len(plain) / 2


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        ("үнқө", "уhко"),  # noqa: RUF001
        ("ٱیكہ ئأ", "ايكه يا"),
        ("ךםןףץ", "כמנפצ"),
        ("カタカナ", "かたかな"),
        ("٣٢ ๔๕ ०९ \U0001d7d8", "32 45 09 0"),
        ("ㅎㅘㄴㅈㅏ ㄴㅡㄴ ㄷㅏㄺ ㅇㅣㅆㄷㅏ", "환자 는 닭 있다"),
    ],
)
def test_forms_of_one_letter_and_digits_of_all_scripts_are_one(said: str, plain: str) -> None:
    assert unaccented(seen(said)) == unaccented(seen(plain))


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


def test_long_texts_of_any_signs_take_no_time() -> None:
    begun = time.perf_counter()
    for one in ("a", "1", "1 ", "ab1", "=", "Ab", "1,a", "0x1f", "\\u{1", "1chr("):
        decoded(one * (100_000 // len(one)))
    assert time.perf_counter() - begun < 20
