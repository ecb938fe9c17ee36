"""From judged masks to a score, against the formula written out."""

import math

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, Interval
from ragwitness.membership.method_registry import configure
from ragwitness.membership.methods.mba.audit import judge_masks, log_likelihood_ratio, score_masks
from ragwitness.membership.methods.mba.masks import MASK_PROMPT, PUBLISHED_PROMPT, Mask, MbaConfig
from ragwitness.membership.methods.mba.response_parsing import read_answers
from ragwitness.membership.methods.mba.spelling import MaskUnit
from ragwitness.membership.response_parsing.replies import read_answer

_MASKS = [
    Mask(1, MaskUnit(6, "canestan", 0, 8, -9.0, 900), ("canestan",), 0.001, "tube of"),
    Mask(2, MaskUnit(9, "nearlt", 0, 6, -9.0, 800), ("nearlt", "nearly"), 0.3, "it was"),
    Mask(3, MaskUnit(12, "doctor", 0, 6, -0.1, 2), ("doctor",), 0.9, "see a"),
    Mask(4, MaskUnit(15, "rash", 0, 4, -5.0, 50), ("rash",), 0.02, "an itchy"),
]
_CONFIG = MbaConfig()


def _score(text: str, config: MbaConfig = _CONFIG):
    reading = read_answer(Answer(text))
    judged = judge_masks(_MASKS, read_answers(reading.text, 4), config)
    return score_masks(judged, config, {})


def test_hits_are_counted_as_the_paper_does() -> None:
    score = _score("[Mask_1]: Canestan\n[Mask_2]: nearly\n[Mask_3]: nurse", MbaConfig(gamma=0.5))
    assert score.value == 2 / 4
    details = score.details
    assert (details["hits"], details["masks"], details["missing"]) == (2, 4, 1)
    assert details["misspelt"] == 1
    assert details["gamma_member"] == 0.0  # "exceeds": half is not more than half
    assert _score("[Mask_1]: canestan\n[Mask_2]: nearlt\n[Mask_3]: doctor",
                  MbaConfig(gamma=0.5)).details["gamma_member"] == 1.0  # fmt: skip
    assert "gamma_member" not in _score("[Mask_1]: x").details


def test_the_weighted_score_is_the_mean_log_likelihood_ratio() -> None:
    said = "[Mask_1]: canestan\n[Mask_2]: nearly\n[Mask_3]: nurse"
    h, floor, total = 0.9, 0.05, 0.0
    for mask, hit in zip(_MASKS, (True, True, False, False), strict=True):
        b = floor + (1 - floor) * mask.probability
        b = min(b, h)
        total += math.log(h / b) if hit else math.log((1 - h) / (1 - b))
    assert _score(said).details["score/weighted"] == pytest.approx(total / 4)


def test_the_ratio_rises_with_the_answer_and_with_the_difficulty() -> None:
    assert log_likelihood_ratio(False, 0.1, _CONFIG) < log_likelihood_ratio(True, 0.1, _CONFIG)
    bases = [log_likelihood_ratio(True, base / 10, _CONFIG) for base in range(11)]
    assert bases == sorted(bases, reverse=True)
    assert min(bases) == 0.0  # a word that anybody guesses is no evidence against
    # A wrong answer to an easy word weighs less against membership, for it was not to be had.
    misses = [log_likelihood_ratio(False, base / 10, _CONFIG) for base in range(11)]
    assert misses == sorted(misses)
    assert max(misses) == 0.0


def test_a_hit_on_a_hard_word_beats_one_on_an_easy_word() -> None:
    hard = _score("[Mask_1]: canestan\n[Mask_2]: x\n[Mask_3]: x\n[Mask_4]: x")
    easy = _score("[Mask_1]: x\n[Mask_2]: x\n[Mask_3]: doctor\n[Mask_4]: x")
    assert hard.value == easy.value
    assert hard.details["score/weighted"] > easy.details["score/weighted"]


def test_breaking_off_early_gains_nothing() -> None:
    whole = _score("[Mask_1]: canestan\n[Mask_2]: x\n[Mask_3]: x\n[Mask_4]: x")
    broken = _score("[Mask_1]: canestan")
    assert whole.value == broken.value
    assert whole.details["score/weighted"] == broken.details["score/weighted"]
    assert broken.details["missing"] == 3


def test_the_words_around_are_no_hit_as_published() -> None:
    said = "[Mask_1]: a tube of canestan\n[Mask_4]: the rash on it"
    assert _score(said).details["hits"] == 2
    assert _score(said, configure("mba:paper")).details["hits"] == 1  # by its first word


def test_not_knowing_is_named() -> None:
    score = _score("[Mask_1]: unknown\n[Mask_2]: N/A\n[Mask_3]: doctor\n[Mask_4]: rash")
    assert score.details["masks_declined"] == 2
    assert score.details["missing"] == 0


def test_evidence_is_the_words_most_telling_first() -> None:
    score = _score("[Mask_1]: canestan\n[Mask_2]: x\n[Mask_3]: doctor")
    assert score.evidence[0].word == "canestan"
    assert score.evidence[0].before == "tube of"
    assert score.evidence[0].baseline == 0.001
    assert score.evidence[0].probability == Interval(1.0, 1.0)
    assert score.evidence[-1].word == "doctor"
    by_word = {item.word: item.probability for item in score.evidence}
    assert by_word["nearlt"] == Interval(0.0, 0.0)
    assert by_word["rash"] == Interval(0.0, 1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"masks": 0}, "masks"),
        ({"source": "spacy"}, "source"),
        ({"spelling": "aspell"}, "spelling"),
        ({"spelling": "hf:"}, "hf:NAME"),
        ({"skip_words": -1}, "skip_words"),
        ({"max_chars": 0}, "max_chars"),
        ({"min_masks": 11}, "min_masks"),
        ({"gamma": 0.0}, "gamma"),
        ({"gamma": 1.5}, "gamma"),
        ({"hit_probability": 1.0}, "hit_probability"),
        ({"floor": 0.0}, "floor"),
        ({"floor": 0.95}, "floor"),
        ({"answer_tokens": 0}, "answer_tokens"),
        ({"prompt": "Predict."}, "masked_document"),
    ],
)
def test_impossible_settings_are_named(options, message) -> None:
    with pytest.raises(InputError, match=message):
        MbaConfig(**options)


def test_the_prompt_is_the_paper_s_without_its_slot_for_documents() -> None:
    assert MASK_PROMPT.startswith("Predict the answers of the masks in the given texts:\n\n")
    assert "{retrieved_documents}" not in MASK_PROMPT
    assert '"[Mask_i]: answer_i\n" for each mask' in MASK_PROMPT


def test_the_paper_s_configuration_is_the_published_one() -> None:
    paper = configure("mba:paper")
    assert (paper.masks, paper.gamma, paper.source) == (10, 0.5, "proxy")
    assert (paper.skip_words, paper.max_chars, paper.avoid_adjacent) == (5, 2048, True)
    assert not paper.unique_words  # ours
    assert paper.prompt == PUBLISHED_PROMPT
    assert "follow the contexts below" in paper.prompt
    assert paper.prompt.endswith('"[Mask_i]: answer_i\n" for each mask:')
    # "exceeds gamma * M": 5 of 10 is no member, 6 is.
    masks = [
        Mask(i, MaskUnit(i, f"w{i}", 0, 2, -1.0, 5), (f"w{i}",), 0.1, "") for i in range(1, 11)
    ]
    for hits, member in ((5, 0.0), (6, 1.0)):
        said = "\n".join(f"[Mask_{i}]: w{i}" for i in range(1, hits + 1))
        judged = judge_masks(masks, read_answers(said, 10), paper)
        assert score_masks(judged, paper, {}).details["gamma_member"] == member
