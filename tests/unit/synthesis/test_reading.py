"""Forms, lists, texts and judgements as real models write them."""

from __future__ import annotations

import json

import pytest

from ragwitness.synthesis.response_parsing import (
    UnreadError,
    read_form,
    read_judgement,
    read_list,
    read_text,
    says_nothing,
)

ATTRIBUTES = (
    ("Patient", "symptoms"),
    ("Patient", "medical history"),
    ("Doctor", "advice"),
    ("Doctor", "next steps"),
)
VALUES = {
    "symptoms": "a dry cough",
    "medical history": "asthma since school",
    "advice": "rest and drink",
    "next steps": "see a doctor after a week",
}


def _sheet(line: str, heading: str = "{}:") -> str:
    rows = []
    for part in ("Patient", "Doctor"):
        rows.append(heading.format(part))
        rows += [line.format(n, VALUES[n]) for own, n in ATTRIBUTES if own == part]
    return "\n".join(rows)


_NESTED = {
    part: {name: VALUES[name] for own, name in ATTRIBUTES if own == part}
    for part in ("Patient", "Doctor")
}
_TURNED = _sheet("- [{}]: {}").split("\n")

FORMS = {
    "as asked": _sheet("- [{}]: {}"),
    "bold, colon inside": _sheet("1. **{}:** {}"),
    "headings": _sheet("### {}\n\n{}", "## {}"),
    "next line": _sheet("- [{}]:\n   {}"),
    "dash": _sheet("- {} – {}"),  # noqa: RUF001
    "table": "| attribute | value |\n|---|---|\n" + _sheet("| {} | {} |", "| **{}** | |"),
    "one bracket": _sheet("- [{}: {}]"),
    "capitals": _sheet("{}: {}").upper().replace("SYMPTOMS", "Symptoms"),
    "underscores": _sheet("{}: {}").replace("medical history", "medical_history"),
    "remarks": f"Sure! Here it is:\n\n{_sheet('- [{}]: {}')}\n\nLet me know if you need more.",
    "fenced JSON": f"```json\n{json.dumps(VALUES)}\n```",
    "nested JSON": f"Here you are: {json.dumps(_NESTED)}",
    "parts turned round": "\n".join(_TURNED[3:] + _TURNED[:3]),
    "one line": "; ".join(f"{name}: {value}" for name, value in VALUES.items()),
    "arrows": _sheet("{} -> {}"),
    "ticked": _sheet("- [x] {}: {}"),
    "JSON by lines": "\n".join(json.dumps({name: value}) for name, value in VALUES.items()),
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_a_form_is_read_however_it_is_laid_out(text: str) -> None:
    found = {name: value.casefold() for (_, name), value in read_form(text, ATTRIBUTES)}
    assert found == VALUES


def test_a_name_may_hold_signs() -> None:
    named = (("", "facts, figures and events"), ("", "topic"), ("", "what is told of the topic"))
    text = "- [topic]: a mill\n- facts, figures and events: 1870\n- what is told of the topic: age"
    assert dict(read_form(text, named)) == dict(zip(named, ["1870", "a mill", "age"], strict=True))


def test_parts_may_share_a_name() -> None:
    both = (("Patient", "history"), ("Doctor", "history"))
    for text in (
        "Doctor:\n- history: none given\nPatient:\n- history: a fall",
        '{"Doctor": {"history": "not stated"}, "Patient": {"history": "a fall"}}',
    ):
        assert read_form(text, both) == ((("Patient", "history"), "a fall"),)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("\n".join(_TURNED[:3]), "2 of the 4 lines are missing"),
        ("I cannot help with that.", "4 of the 4 lines are missing"),
        (_sheet("- [{}]: None"), "nothing is said of any of the 4"),
        (_sheet("- [{0}]:"), "nothing is said of any of the 4"),
        ("", "4 of the 4"),
    ],
)
def test_what_is_missing_is_counted(text: str, says: str) -> None:
    with pytest.raises(UnreadError, match=says):
        read_form(text, ATTRIBUTES)


def test_a_missing_line_says_nothing() -> None:
    whole = read_form("\n".join(_TURNED), ATTRIBUTES)
    assert read_form("\n".join(_TURNED[:-1]), ATTRIBUTES) == whole[:-1]


@pytest.mark.parametrize(
    ("name", "value", "silent"),
    [
        ("symptoms", "Not specified.", True),
        ("symptoms", "None mentioned", True),
        ("symptoms", "not mentioned in the text", True),
        ("symptoms", "No information provided", True),
        ("symptoms", "The text does not mention this.", True),
        ("symptoms", "N/A", True),
        ("symptoms", "No data", True),
        ("symptoms", "There isn't any.", True),
        ("symptoms", "The record does not say.", True),
        ("symptoms", "Keine Angabe", True),
        ("symptoms", "(left blank)", True),
        ("medical history", "[medical history]", True),
        ("symptoms", "cannot say when it began, worse at night", False),
        ("symptoms", "Not reported", True),
        ("recent events", "No recent events", True),
        ("next steps", "Not sure what the exact date was", False),
        ("symptoms", "no fever", False),
        ("symptoms", "No pain reported at night", False),
        ("medical history", "no known allergies", False),
        ("medical history", "asthma, not treated", False),
        ("assessment", "nothing serious", False),
        ("worries", "The patient does not express any worries.", True),
        ("treatment", "No treatment was suggested by the doctor.", True),
        ("medical history", "The patient did not share their medical history.", True),
        ("next steps", "TBD", True),
        ("duration", "How long is not indicated.", True),
        ("assessment", "Unknown cause, not given by tests", False),
        ("what is asked", "Is there no information on the dose?", False),
        ("vaccines", "Never vaccinated", False),
        ("urgency", "Not urgent", False),
    ],
)
def test_what_says_that_nothing_is_said(name: str, value: str, silent: bool) -> None:
    assert says_nothing(name, value) is silent


@pytest.mark.parametrize(
    "text",
    [
        "- [cause]\n- [next steps]",
        "1. **Cause**: why it happened\n2. **Next steps**: what to do",
        "cause\nnext steps",
        '["cause", "next steps"]',
        "cause, next steps",
        "```\n- cause\n- next steps\n```",
        "- [attribute] cause\n- [attribute] next steps",
        "Here are the attributes:\n\n- cause\n- next steps\n\nI hope this helps!",
    ],
)
def test_a_list_is_read_however_it_is_written(text: str) -> None:
    assert [one.casefold() for one in read_list(text)] == ["cause", "next steps"]


@pytest.mark.parametrize(
    "text", ["I'm sorry, I cannot.", "Texts of this kind are read for what they say."]
)
def test_prose_and_refusals_are_no_list(text: str) -> None:
    assert read_list(text) == []


_TALK = "Patient: I have a cough.\nDoctor: Rest, and see a doctor if it lasts."


@pytest.mark.parametrize(
    "text",
    [
        _TALK,
        f"Here is the text:\n\n{_TALK}",
        f"<<<\n{_TALK}\n>>>",
        f"```\n{_TALK}\n```",
        f'"{_TALK}"',
        f"{_TALK}\n\nI hope this helps! Let me know if you want changes.",
        f"{_TALK}\n\n(Note: all personal details were removed from the original.)",
        f"{_TALK}\n\n*I have removed the name John Smith.*",
        f"{_TALK}\n\n---\nThe name John Smith was changed.",
        f"{_TALK}\n\nChanges made:\n- removed John Smith",
        f"{_TALK}\nExplanation: I removed John Smith.",
        _TALK.replace("Patient:", "**Patient**:").replace("Doctor:", "**Doctor**:"),
        json.dumps(dict(line.split(": ") for line in _TALK.split("\n"))),
    ],
)
def test_a_text_is_read_without_what_stands_around_it(text: str) -> None:
    assert read_text(text, ("Patient:", "Doctor:")) == _TALK


@pytest.mark.parametrize(
    "text",
    ["", "I'm sorry, but I can't help with that.", f"{_TALK}\nPatient: c", "[BEG]x[END]"],
)
def test_another_form_is_no_text(text: str) -> None:
    assert read_text(text, ("Patient:", "Doctor:")) is None


def test_parts_may_stand_in_one_line() -> None:
    one = _TALK.replace("\n", " ")
    assert read_text(one, ("Patient:", "Doctor:")) == one


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ("The data passes every point.\n\nSAFE_DATA: [BEG]x[END]THISISSAFE", ""),
        ("**SAFE_DATA:** [BEG]x[END]**THISISSAFE**\n\nIt protects privacy.", ""),
        ("```\nSAFE_DATA: [BEG]x[END]THISISSAFE\n```", ""),
        ("## Suggestions:\nDrop the age", "Drop the age"),
        ("Suggested changes: drop the age", "drop the age"),
        ("SUGGESTIONS\n1. Drop the age.", "1. Drop the age."),
        ("It fails point 2, but SAFE_DATA: [BEG]x[END]THISISSAFE", None),
        ("SAFE_DATA: [BEG]x[END]THISISSAFE SUGGESTIONS: change it", None),
        ("The data is safe.", None),
        ("It would be wrong to say SAFE_DATA: [BEG]x[END]THISISSAFE", None),
    ],
)
def test_a_judgement_is_read_with_remarks_and_takes_nothing_for_safe(
    answer: str, wanted: str | None
) -> None:
    assert read_judgement(answer, lambda handed: handed == "x") == wanted
    assert read_judgement(answer, lambda handed: False) != ""


def test_what_a_surgeon_removed_is_no_remark() -> None:
    told = "My pain began in May.\n\nThe gallbladder was removed in June."
    assert read_text(told, ()) == told
    turns = "Patient: It hurts.\n\nDoctor: Your appendix was removed, so it is something else."
    assert read_text(turns, ("Patient", "Doctor")) == turns
    assert read_text(f"{turns}\n\nAll names were removed.", ("Patient", "Doctor")) == turns
