"""Spelling: what is corrected, and what is left alone because it is no mistake."""

import sys

import pytest

from ragwitness.core.errors import InputError, MissingExtraError, ModelError
from ragwitness.membership.methods.mba import spelling
from ragwitness.membership.methods.mba.spelling import (
    LibrarySpeller,
    MaskUnit,
    SequenceSpeller,
    corrections,
    load_speller,
)

_MID = ("it", "was")


@pytest.fixture(scope="module")
def library() -> LibrarySpeller:
    return LibrarySpeller()


@pytest.mark.parametrize(
    ("before", "word", "meant"),
    [
        (_MID, "nearlt", "nearly"),
        (_MID, "recieve", "receive"),
        (_MID, "definately", "definitely"),
        (("at", "home."), "Recieve", "Receive"),
        ((), "Recieve", "Receive"),
    ],
)
def test_mistakes_one_edit_away_are_corrected(library, before, word, meant) -> None:
    assert library.correct(before, word) == meant


@pytest.mark.parametrize(
    ("before", "meant"),
    [
        (("was", "a"), "piece"),
        (("for", "world"), "peace"),
        (("the", "full"), "price"),
        (("a", "litle"), "piece"),  # the word before is corrected first: "little"
        (("the", "worls"), "peace"),  # "the world peace", and
        (("of", "worls"), "price"),  # "of words price": the word two before tells
        (("a", "small,"), "piece"),
        (("was", "zzyzx"), "price"),  # nothing is seen after it: the commonest
        (("was", "full."), "price"),  # a sentence begins, with no word before it
        ((), "price"),
    ],
)
def test_one_misspelling_is_corrected_by_the_words_before_it(library, before, meant) -> None:
    # A speller without context gives one of these for all of them.
    assert library.correct(before, "peice") == meant


@pytest.mark.parametrize(
    "word",
    [
        "tumor",  # the dictionary has "tumour"
        "tumors",
        "edema",
        "diarrhea",
        "hemorrhoids",
        "pediatrician",
        "nearly",  # right
        "Quillingtom",  # a name in mid-sentence
        "Recieve",  # in mid-sentence it may be a name
        "RECIEVE",  # an abbreviation, or shouting
        "mri",  # short words have too many neighbours
        "B12",
        "3.5",
        "2mg",
        "ear/paw",
        "well-knwon",
        "ossifications",  # the plural of a word that the dictionary has
        "doctor's",
        "canestan",  # nothing near
        "собака",
        "naïve",
        "猫",
        "",
    ],
)
def test_what_is_no_mistake_is_left_alone(library, word) -> None:
    assert library.correct(_MID, word) is None


def test_the_library_reads_english_and_nothing_else(library) -> None:
    assert library.reads("My stomache hurts since the doctor gave me these white pills.")
    assert not library.reads("Mi estómago duele desde que el médico recetó estas pastillas blancas")
    assert not library.reads("Seit gestern schmerzt mein Bauch, obwohl keine Krankheit vorliegt")


def test_only_fragmented_words_are_asked_about_with_two_words_before() -> None:
    asked = []

    class Speller:
        def correct(self, previous_two, word):
            asked.append((*previous_two, word))
            return "nearly" if word == "nearlt" else None

        def reads(self, text):
            return "hola" not in text

    text = "nearlt gone, the dog was nearlt here"
    units = [
        MaskUnit(0, "nearlt", 0, 6, -9.0, 10, fragmented=True),
        MaskUnit(3, "dog", 17, 20, -9.0, 10),
        MaskUnit(5, "nearlt", 25, 31, -9.0, 10, fragmented=True),
    ]
    assert corrections(text, units, Speller()) == {0: "nearly", 5: "nearly"}
    assert asked == [("nearlt",), ("dog", "was", "nearlt")]
    assert corrections(text + " hola", units, Speller()) == {}
    assert corrections(text, units, None) == {}


@pytest.mark.parametrize(
    ("said", "word", "meant"),
    [
        ("It was nearly.", "nearlt", "nearly"),
        ("It was Nearlt", "nearlt", None),
        ("It was near it", "nearlt", None),
        ("", "nearlt", None),
        ("It was ...", "nearlt", None),
        ("It was Quillington", "Quilington", "Quillington"),
        ("It was 13", "12", None),
    ],
)
def test_a_model_is_read_at_the_third_word(said, word, meant) -> None:
    seen = []
    speller = SequenceSpeller(lambda words: seen.append(words) or said)
    assert speller.correct(_MID, word) == meant
    assert seen in ([f"it was {word}"], [])


def test_no_speller_by_name() -> None:
    assert load_speller("none") is None


def test_a_missing_library_is_named_with_its_install_line(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "symspellpy", None)
    spelling._english.cache_clear()
    with pytest.raises(InputError, match="pip install symspellpy"):
        load_speller("symspell")
    spelling._english.cache_clear()


def test_a_model_without_its_extra_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    spelling._model.cache_clear()
    with pytest.raises(MissingExtraError, match=r"ragwitness\[hf\]"):
        load_speller("hf:some/corrector")


@pytest.mark.slow
def test_a_model_is_loaded_from_a_folder(tmp_path) -> None:
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    with pytest.raises(ModelError, match="cannot load"):
        load_speller(f"hf:{tmp_path / 'nothing'}")
    config = transformers.T5Config(
        vocab_size=384, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2,
        decoder_start_token_id=0,
    )  # fmt: skip
    transformers.T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    transformers.ByT5Tokenizer().save_pretrained(tmp_path)
    speller = load_speller(f"hf:{tmp_path}")
    assert load_speller(f"hf:{tmp_path}") is speller
    meant = speller.correct(_MID, "nearlt")
    assert meant is None or meant.casefold() != "nearlt"
