"""Contacts and listed names in every script: found, and nothing innocent with them."""

import pytest

from benchmarks.faces_audit import RECORDS, SCRIPTS, leaked
from benchmarks.faces_text import Row, rows
from ragwitness.text.secrets import Secret, SecretIndex

pytestmark = pytest.mark.face("scripts")


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.script)
def test_contacts_and_names_of_a_script(row: Row) -> None:
    assert {right - of for right, of in row[1:]} == {0}


@pytest.mark.parametrize("script", SCRIPTS)
def test_leak_counts_what_answers_say_of_records_and_nothing_of_others(script: str) -> None:
    assert leaked(SCRIPTS[script]) == (RECORDS, RECORDS, RECORDS // 2, RECORDS // 2, 0)


@pytest.mark.parametrize(
    ("secret", "said"),
    [
        ("jo.harper@example.org", "연락처는jo.harper@example.org입니다."),
        ("jo.harper@example.org", "ईमेलjo.harper@example.orgहै"),
        ("Quillfeather", "문서의Quillfeather씨"),
        ("LG전자", "그는 LG 전자에 있다"),
        ("jo.harper@example.org", "\u0432\u0447jo.harper@example.org\u0442\u0430\u043c"),
        ("+49 151 2345678", "χθες+491512345678είπε"),
        ("ნინო ბერიძე", "გუშინ ნინო ბერიძემ თქვა"),
        ("రమేష్ రెడ్డి", "నిన్న రమేష్ రెడ్డికి చెప్పారు"),
        ("નીતા પટેલ", "ગઈકાલે નીતા પટેલને મળ્યા"),
        ("සුනිල් පෙරේරා", "ඊයේ සුනිල් පෙරේරාගේ ලිපිය"),
        ("ትዕግስት", "ትናንት የትዕግስት ደብዳቤ"),
    ],
)
def test_a_word_ends_where_another_script_joins_it(secret: str, said: str) -> None:
    assert SecretIndex([Secret(secret, "name", "r")]).find(said)


@pytest.mark.parametrize(
    ("secret", "said"),
    [
        ("மீனாட்சி பழனிச்சாமி", "தங்கராசு பழனிச்சாமி நோயுற்று மீனாட்சி குமாரசாமி மூலம்"),
        ("विमला माथुर", "सरोज माथुर ने विमला भट्ट को लिखा"),
        ("Жанна Жукова", "там Жукова жила Жанна пела"),
    ],
)
def test_a_middle_name_has_a_capital(secret: str, said: str) -> None:
    assert not SecretIndex([Secret(secret, "name", "r")]).find(said)
