"""A secret in other spellings is the same secret; other words are another."""

from __future__ import annotations

import unicodedata

import pytest

from ragwitness.text.secrets import Found, Secret, SecretIndex
from ragwitness.text.spellings import identity, row_of

LISTED = {
    "name": "Jos\u00e9 \u00c1lvarez",
    "person": "Evelyn van der Linden",
    "patient": "J\u00fcrgen O'Neill",
    "phone": "(713) 853-1234",
    "abroad": "+44 20 7946 0958",
    "home": "020 7946 0123",
    "e-mail": "jo.h@mail.example.org",
    "web": "https://www.example.org/a/b/",
    "file": "AB-123456",
    "born": "1980-03-12",
    "salary": "98,500",
    "time": "12:45",
    "double": "Jean-Pierre Dupont",
    "four": "Mar\u00eda del Carmen Garc\u00eda L\u00f3pez",
    "network": "5G",
    "short name": "Li",
    "chinese": "\u738b\u4f1f",
}
SECRETS = [Secret(text, kind, "r") for kind, text in LISTED.items()]


def found(text: str) -> set[str]:
    return {SECRETS[secret].kind for _, secret in SecretIndex(SECRETS).pairs([text])}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Jose Alvarez", "name"),
        (unicodedata.normalize("NFD", LISTED["name"]), "name"),
        ("\u00c1LVAREZ, JOS\u00c9", "name"),
        ("Jos&eacute; <b>&Aacute;lvarez</b>", "name"),
        ("J. Alvarez", "name"),
        ("jose_alvarez.pdf", "name"),
        ("Linden, Evelyn van der", "person"),
        ("van der Linden, Evelyn", "person"),
        ("Evelyn Linden", "person"),
        ("E. van der Linden", "person"),
        ("Evelyn VanDerLinden's", "person"),
        ("Juergen ONeill", "patient"),
        ("Jurgen O\u2019Neill", "patient"),
        ("+17138531234", "phone"),
        ("001 713 853 1234", "phone"),
        ("1-713-853-1234", "phone"),
        ("call 555 0100 713 853 1234 99 12", "phone"),
        ("713\u2013853\u20131234 x5", "phone"),
        ("\uff17\uff11\uff13 853 1234", "phone"),
        ("(020) 7946 0958", "abroad"),
        ("+44 (0)20 7946 0123", "home"),
        ("JO.H@MAIL.EXAMPLE.ORG", "e-mail"),
        ("jo.h (at) mail dot example dot org", "e-mail"),
        ("example.org/a/b", "web"),
        ("http://example[.]org/a/b?x=1", "web"),
        ("ab 123 456", "file"),
        ("12 March 1980", "born"),
        ("on March 12th, 1980", "born"),
        ("12.3.1980", "born"),
        ("03/12/1980", "born"),
        ("98,500", "salary"),
        ("98500 a year", "salary"),
        ("98.500", "salary"),
        ("at 12:45", "time"),
        ("J.-P. Dupont", "double"),
        ("Dr. Dupont", "double"),
        ("MRS LINDEN", "person"),
        ("Frau van der Linden", "person"),
        ("Mar\u00eda Garc\u00eda", "four"),
        ("Maria Garcia L\u00f3pez", "four"),
        ("the 5G net", "network"),
        ("Mr. Li, who", "short name"),
        ("he said li came", "short name"),
        ("\u6211\u8ba4\u8bc6\u738b\u4f1f\u5148\u751f", "chinese"),
    ],
)
def test_a_secret_in_another_spelling_is_found(text: str, kind: str) -> None:
    assert kind in found(text)


@pytest.mark.parametrize(
    "text",
    [
        "713-853-12345",
        "27138531234",
        "7 units, 13 of 853, then 1234",
        "Jose and Alvarez",
        "Joseph Alvarez",
        "a linden tree in E flat",
        "Ask: the li is a unit, Lie too",
        "example.org/a/c",
        "AB-1234567",
        "13 March 1980",
        "12 March 1981",
        "98 of 500",
        "12, then 45",
        "Dr. Dupontel",
        "Carmen Garc\u00eda",
        "",
    ],
)
def test_other_words_are_no_secret(text: str) -> None:
    assert not found(text)


def test_short_names_are_words_with_capitals_and_not_function_words() -> None:
    names = [Secret(one, "name", "") for one in ("Do", "An", "Al Lin", "Si Ng", "X", "42")]
    index = SecretIndex(names)
    text = "Do not go. An owl is all in, so sing at 42: x. do it, an owl"
    assert index.find(text) == []
    assert {one.secret for one in index.find("We met Do and An with Al Lin and Si Ng")} == {
        0,
        1,
        2,
        3,
    }


def test_a_find_is_a_range_of_the_text_as_it_stands() -> None:
    text = "Stra\u00dfe & Jos&eacute;\u00a0<i>A\u0301lvarez</i>!"
    one, *_ = SecretIndex(SECRETS).find(text)
    assert text[one.start : one.end] == "Jos&eacute;\u00a0<i>A\u0301lvarez"[: one.end - one.start]
    assert one.start == text.index("Jos")
    assert text[: one.end].rstrip("\u0301").endswith("lvarez")
    assert isinstance(one, Found)


def test_names_are_reordered_and_canaries_are_not() -> None:
    index = SecretIndex([Secret("Blue Zebra", "canary", ""), Secret("Red Zebra", "name", "")])
    assert index.pairs(["Zebra Blue", "Zebra Red", "BLUE zebra"]) == {(1, 1), (2, 0)}


def test_parts_of_a_name_are_sought_where_asked_for() -> None:
    secrets = [Secret("Evelyn van der Linden", "name", "r")]
    text = "Our van der Linden, called Evelyn, met a van"
    assert SecretIndex(secrets).find(text) == []
    said = [text[one.start : one.end] for one in SecretIndex(secrets, parts=True).find(text)]
    assert said == ["van der Linden", "Linden", "Evelyn"]


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("Jose Alvarez", "\u00c1lvarez, Jos\u00e9", "name"),
        ("(713) 853-1234", "+1 713 853 1234", "phone"),
        ("http://www.example.org/", "example.org", "web"),
        ("A.B@example.org", "a.b@example.org", "e-mail"),
        ("7 November 1962", "07/11/62", "born"),
        ("7. Nov. 2004", "2004-11-07T00:00:00", "visit"),
        ("8 Oak St.", "8, Oak Street", "home"),
        ("Gartenstra\u00dfe 9", "Gartenstr. 9", "home"),
    ],
)
def test_two_listings_of_one_secret_are_one(first: str, second: str, kind: str) -> None:
    assert identity(first, kind) == identity(second, kind)
    assert identity(first, kind) != identity("Rosa Zhou 99", kind)


DRESSED = {
    "born": ("7 November 1962", "2 May 2004", "1962-11-07 00:00:00", "07/11/62"),
    "name": ("Nora Quist", "J\u00fcrgen von M\u00fcller"),
    "home": ("418 Alder Avenue", "9 Elm Ct", "Gartenstra\u00dfe 9"),
}


@pytest.mark.parametrize(
    ("listed", "text"),
    [
        (0, "born 7/11/62."),
        (0, "11-07-62, female"),
        (0, "7.11.62"),
        (0, "07-Nov-62"),
        (0, "Nov 7, '62"),
        (0, "am 7. Nov. 1962 und"),
        (0, "le 7 novembre 1962"),
        (0, "el 7 de noviembre de 1962"),
        (0, "the 7th of November, 1962"),
        (0, "7th_of_November_1962"),
        (0, "7&nbsp;Nov&nbsp;62"),
        (0, "7\u200b/11/62"),
        (0, "1962, November 7"),
        (0, "1962-Nov-07, female"),
        (1, "2. Mai 2004"),
        (1, "2 de mayo del 2004"),
        (1, "May 2nd, 2004"),
        (2, "7 November 1962"),
        (2, "11/7/62"),
        (3, "November 7, 1962"),
        (3, "7.11.1962"),
        (4, "Nora B. Quist"),
        (4, "Nora B Quist's"),
        (4, "NORA BELLE QUIST"),
        (4, "Nora (Belle) Quist"),
        (4, 'Nora "Bee" Quist'),
        (4, "Nora <b>Belle</b>\nQuist"),
        (5, "J\u00fcrgen K. von M\u00fcller"),
        (5, "Juergen Karl Mueller"),
        (6, "418 Alder Ave."),
        (6, "418 ALDER AV"),
        (7, "9 Elm Court"),
        (8, "Gartenstr. 9"),
        (8, "Garten-Strasse 9"),
    ],
)
def test_dates_names_and_streets_are_found_as_people_write_them(listed: int, text: str) -> None:
    kind, secret = [(kind, one) for kind, every in DRESSED.items() for one in every][listed]
    found = SecretIndex([Secret(secret, kind, "")]).find(f"So {text} it says")
    assert found
    # As a whole: redaction leaves nothing of it.
    said = f"So {text} it says"[found[0].start : max(one.end for one in found)]
    assert said.rstrip("'s") in text
    assert len(said) >= len(text.strip(".,'s")) - len("born , female am und le el the of")


@pytest.mark.parametrize(
    "text",
    [
        "7 11 62",
        "071162",
        "7/11-62",
        "06.07.11.62.90",
        "7/11/62/3",
        "17/11/62",
        "7/11/62%",
        "8/11/62",
        "7 November 63",
        "7 Noveau 1962",
        "on 7 November 620 came",
        "Nora and Quist",
        "Nora, Belle Quist",
        "Nora. Then Quist",
        "Nora Belle Ann Quist",
        "Mrs Belle Quist",
        "nora belle quist",
        "418 Alder Road",
        "418 Alder",
        "Alder Ave",
        "9 Elm Courtier",
    ],
)
def test_other_dates_names_and_streets_are_not(text: str) -> None:
    # But for the last date: a number as its owner writes it is found in any row of its digits.
    born, *others = DRESSED.values()
    secrets = [Secret(one, "name", "") for every in (born[:3], *others) for one in every]
    assert not SecretIndex(secrets).find(f"So {text} it says")


def _said(name: str, text: str) -> list[str]:
    return [text[one.start : one.end] for one in SecretIndex([Secret(name, "name", "")]).find(text)]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("박지영", "박지영은"),
        ("박지영", "박지영씨에게는"),
        ("지영", "지영이가"),
        ("Nora Quist", "Nora Quist에게"),
    ],
)
def test_a_korean_name_is_found_with_its_particles(name: str, said: str) -> None:
    assert _said(name, f"환자 {said} 어제 왔다") == [said]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("วิชัย ทองดี", "นายวิชัยทองดีมาถึง"),
        ("ประเสริฐ", "แพทย์พบประเสริฐเมื่อวาน"),
        ("มานะ", "นาย มานะ มา"),
        ("ສົມພອນ", "ທ້າວສົມພອນມາ"),
        ("သီရိကျော်", "ကိုသီရိကျော်သည်"),
        ("សុខា ចាន់", "លោកសុខាចាន់បាន"),
    ],
)
def test_a_name_is_found_in_a_script_without_spaces(name: str, text: str) -> None:
    [said] = _said(name, text)
    assert said.replace(" ", "") == name.replace(" ", "")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Nora Quist", "Nora Quists"),
        ("Schröder", "Schröders"),
        ("Lindner", "Lindners Akte"),
        ("Nora Lindner", "Frau Lindners"),
        ("Anna Korhonen", "Anna Korhoselta"),
        ("Ilse Brandt", "ILSE BRANDTILLE"),
        ("Anna-Lena \u00c5ngstr\u00f6m", "A. \u00c5ngstr\u00f6m"),
        ("ilse brandt", "ilse brandtin"),
        ("Сергей Волков", "СЕРГЕЙ ВОЛКОВ"),
        ("Сергей Волков", "Сергеем Волковым"),
        ("Сергей Волков", "Сергея Петровича Волкова"),
        ("Сергей Волков", "С. Волкову"),  # noqa: RUF001
        ("Мария Соколова", "Марию Соколову"),
        ("Ольга Лесная", "Ольги Лесной"),
        ("Волков", "Волкове"),
        ("Νίκος Βενιζέλος", "ΒΕΝΙΖΕΛΟΣ ΝΙΚΟΣ"),
        ("يوسف حداد", "يوسف حداد"),
    ],
)
def test_an_inflected_name_is_found_as_a_whole(name: str, said: str) -> None:
    text = f"so ({said}) so" if name.islower() else f"So ({said}) it says"
    whole = said.removeprefix("Frau ").removesuffix(" Akte")
    assert whole in _said(name, text)
    assert "يوسف حداد" in _said("يوسف حداد", "قال ليوسف حداد")


@pytest.mark.parametrize(
    "said",
    [
        '{"given_name": "Nora", "family_name": "Quist"}',
        '{\\"last\\":\\"Quist\\",\\"first\\":\\"Nora\\"}',
        "Vorname: Nora\nNachname: Quist",
        "Nom : Quist, prénom : Nora",
        "| First | Nora | Last | Quist |",
        "firstName=Nora&lastName=Quist",
        "nora%20quist.pdf",
        "Nora\\nQuist",
        "Señora Quist",
        "Herrn Quist",
        "Professor Quists",
        "mme quist",
        "DrQuist",
    ],
)
def test_a_name_is_found_between_labels_and_behind_titles(said: str) -> None:
    assert _said("Nora Quist", f"So {said} it says")


@pytest.mark.parametrize("text", ["May the 4th, 1979", "the 4th of May, 1979", "May_the_4th_1979"])
def test_a_date_is_found_with_its_articles(text: str) -> None:
    assert SecretIndex([Secret("1979-05-04", "date", "")]).find(f"On {text} it was")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("박지영", "박지영화가 왔다"),
        ("박지영", "소박지영은"),
        ("มานะ", "ผู้ป่วยมานะมา"),
        ("Julia", "Julian and julias"),
        ("Rupert", "Ann Ruperts, who"),
        ("Nora Quist", "Nora Quistler, Nora Quistsen"),
        ("Nora Quist", "Your doctor. Quist ended; the doctor quist, Doctor: Quist"),
        ("Nora Quist", "last night: Quist, and Nora"),
        ("Волков", "волковым"),
        ("Мария", "A map, and Марта"),
        ("Сергей Волков", "Сергея и Волкова"),
        ("علي", "وعلينا"),
        ("Anna Van", "The patient, Mr. Who"),  # a family name that is a particle elsewhere
    ],
)
def test_what_only_begins_or_ends_like_a_name_is_none(name: str, text: str) -> None:
    assert not _said(name, f"So: {text} it says")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Tran My", "Patient: My son is 4"),
        ("Lara Good", "Patient: good day"),
        ("Lara Good", "Doctor - no. Good day"),
        ("Selim Can", "Sir Can you help"),
        ("Omar Said", "my dr said that"),
        ("Kim An", "ask the dr an hour later"),
        ("Ada Ink", "I drink; MRSA"),
        ("Tom Long", "Long T waves"),
        ("Anna Good", "A Good Day; Professor A: Good"),
        ("Ivo Can", "Can I? Can I."),
        ("Tim Cell", "the T-Cell"),
    ],
)
def test_words_behind_titles_and_letters_are_no_names(name: str, said: str) -> None:
    assert not _said(name, f"So we know. {said} it is")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Tran My", "Mrs. My"),
        ("Selim Can", "Dr. Can"),
        ("Nora Quist", "Patient Quist"),
        ("Nora Quist", "N Quist"),
        ("Nora Quist", "Quist N"),
        ("Anne-Lise Moreau", "A-L. Moreau"),
        ("Anne-Lise Moreau", "Moreau A-L"),
        ("Đorđe Đurić", "Djordje Djuric"),
        ("Djordje Djuric", "Đorđe Đurić"),
        ("کریم علی", "كريم علي"),
    ],
)
def test_a_name_is_found_behind_titles_as_cited_and_in_other_letters(name: str, said: str) -> None:
    assert _said(name, f"So we know {said}, 41; it is")


def test_a_family_name_alone_behind_a_colon_fills_its_line() -> None:
    for behind in ("\nAge: 41", ", 41 years", " (41)", ". Seen in May", "; knee", "/ward 4", ""):
        assert _said("Nora Quist", f"Patient: Quist{behind}") == ["Quist"]
        assert _said("Nora Quist", f"PATIENT: QUIST{behind.upper()}") == ["QUIST"]
    assert not _said("Nora Quist", "Patient: Quist fever\nAge: 41")
    for name, text in (("Sam Dear", "Doctor: Dear, the"), ("Ian May", "my dr. may want it")):
        assert not _said(name, text)


@pytest.mark.parametrize(
    "text", ["I saw dr. quist", "ms quist said so", 'Dr. "Quist" came', "Mr: Quist it is"]
)
def test_a_family_name_is_found_small_or_between_marks(text: str) -> None:
    assert [one.casefold() for one in _said("Nora Quist", text)] == ["quist"]


def test_a_telephone_number_is_found_behind_its_country() -> None:
    for text in ("+493019478284", "00493019478284", "+49 30 19478284"):
        assert SecretIndex([Secret("030-19478284", "phone", "")]).find(f"Call {text} now")


def test_a_short_telephone_number_may_be_parted_as_one_likes() -> None:
    for text in ("24-681", "246 81", "2-46-81"):
        assert SecretIndex([Secret("24681", "phone", "")]).find(f"Call {text} now")


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        ("2040", "20-40"), ("315", "3.15"), ("200", "2-0-0"), ("200", "20.0"), ("2-4-6", "246"),
        ("2-4-6", "2, 4, 6"), ("37.2", "372"), ("37.2", "37 (2"), ("11:20", "11%-20"),
        ("11:20", "11-20"), ("2468", "2-468"), ("24681", "246-81"), ("101520", "10:15:20"),
    ],
)  # fmt: skip
def test_numbers_with_signs_between_are_several(secret: str, text: str) -> None:
    assert not SecretIndex([Secret(secret, "id", "")]).find(f"Take {text} of it")


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        ("2040", "2,040"), ("24681", "24 681"), ("24,681", "24681"), ("24.681", "24'681"),
        ("11:20", "11.20"), ("37.2", "37,2"), ("120/80", "120 - 80"), ("246813", "24-68-13"),
        ("24-68-13", "246813"), ("2468135", "24-681 35"), ("24681", "2 4 6 8 1"),
        ("24-68", "24\u221268"), ("10.9.8.7", "10[.]9[.]8[.]7"), ("2 +- 41", "2 +- 41"),
        ("8 (912) 345-67-89", "+7 912 345 67 89"), ("06 1 345 6789", "+36 1 345 6789"),
        ("1962-11-07", "1962年11月7日"), ("1962年11月07日", "7 November 1962"),
        ("1962-11-07", "1962년 11월 7일"), ("1962-11-07", "7th day of November in the year 1962"),
    ],
)  # fmt: skip
def test_one_number_is_found_in_its_groups(secret: str, text: str) -> None:
    assert SecretIndex([Secret(secret, "id", "")]).find(
        f"生于{text}, so".replace("于7th", "于 7th")
    )


def test_the_words_of_a_name_are_sought_inflected_where_asked_for() -> None:
    index = SecretIndex([Secret("Anna Korhonen", "name", "")], parts=True)
    text = "Potilas Korhosen, Annas, the Korhonens"
    assert [text[one.start : one.end] for one in index.find(text)] == ["Korhosen", "Korhonens"]


def test_inflected_names_are_no_canaries_and_no_other_secrets() -> None:
    index = SecretIndex([Secret("Schröder", "canary", ""), Secret("Schröder", "street", "")])
    assert not index.find("Schröders Akte")


def test_a_canary_stands_alone_with_nothing_between() -> None:
    index = SecretIndex([Secret("Nora Quist", "canary", ""), Secret("Nora Vale", "name", "")])
    assert index.pairs(["Nora B. Quist", "Nora B. Vale"]) == {(1, 1)}


def test_names_in_a_long_row_of_signs_are_sought_in_time() -> None:
    index = SecretIndex([Secret("Nora Quist", "name", "")])
    for one in ("A-", "A'AA", "A (", "Aa ", "1/", "May ", "7 May ", "rosa(at)"):
        assert not index.find(one * 4000)


def test_a_text_of_signs_alone_has_no_letters() -> None:
    assert row_of("\u2014 \u200b ...").letters == ""


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        (
            "5500 0055 5555 5559",
            "number",
            "<tr><td>5500</td><td>0055</td><td>5555</td><td>5559</td>",
        ),
        ("713 555 0142", "contact", "<b>713</b> <span class=x>555</span> <i>0142</i>"),
        ("Εύα Ρούσσου", "name", "ΕΥΑ ΡΟΥΣΣΟΥ"),  # noqa: RUF001
        ("سارة الحربي", "name", "ســـارة الحـــربي"),
    ],
)
def test_cells_capitals_and_wide_letters_hide_no_secret(text: str, kind: str, said: str) -> None:
    [found] = SecretIndex([Secret(text, kind, "")]).find(f"It is {said} there.")
    assert f"It is {said} there."[found.start : found.end].strip("<>/tdrbi") in said


def test_numbers_in_cells_far_apart_make_no_number() -> None:
    said = "<td>5500</td> of 0055 and <td>5555 more, then 5559</td>"
    assert not SecretIndex([Secret("5500 0055 5555 5559", "number", "")]).find(said)
