"""SAGE as published: the paper's prompts word for word, in the loop of its code."""

from __future__ import annotations

import pytest

from ragwitness.core.types import Answer, Query
from ragwitness.synthesis.agents import DOMAINS, MakingConfig
from ragwitness.synthesis.generator import Fate
from research.synthetic.paraphrase import PublishedParaphrase
from research.synthetic.published import PARAPHRASE_JOE, PublishedSage
from tests.support.writers import good, kind_of
from tests.unit.synthesis.test_sage import OTHER, RECORD, play


def test_the_published_loop_keeps_what_was_never_called_safe() -> None:
    def model(query: Query) -> str:
        kind = kind_of(query.prompt)
        if kind == "judge":
            return "SUGGESTIONS: more"
        if kind == "rewrite":
            return f"GENERATED DATA: {OTHER.text}"
        return good(kind, query.prompt)

    made, asked = play(PublishedSage(), model)
    assert (made.fate, made.text, made.rounds) == (Fate.UNGUARDED, OTHER.text, 5)
    assert made.violation == "run"
    assert all(query.max_tokens == 256 for query in asked)
    assert "warning" in PublishedSage().describe()
    # The conversation so far stands in each prompt, the record in the first message of it.
    rewrites = [q.prompt for q in asked if kind_of(q.prompt) == "rewrite"]
    assert [prompt.count("Joe: SUGGESTIONS: more") for prompt in rewrites] == [1, 2, 3, 4]
    assert all(RECORD.text in prompt for prompt in rewrites)


def test_the_published_loop_takes_what_the_agent_hands_back() -> None:
    def model(query: Query) -> str:
        if kind_of(query.prompt) == "judge":
            return f"SAFE_DATA: [BEG]{RECORD.text}[END]THISISSAFE"
        return good(kind_of(query.prompt), query.prompt)

    made, _ = play(PublishedSage(), model)
    assert (made.text, made.violation) == (RECORD.text, "secret")


@pytest.mark.parametrize("stage", [1, 2])
def test_stage_one_ends_before_the_agents(stage: int) -> None:
    medical = MakingConfig(domain=DOMAINS["medical"])
    made, asked = play(PublishedSage(medical, stage), lambda q: good(kind_of(q.prompt), q.prompt))
    kinds = ["extract", "generate", "judge"][: stage + 1]
    assert [kind_of(query.prompt) for query in asked] == kinds
    assert made.rounds == stage - 1
    assert len(asked) <= PublishedSage(medical, stage).most(1)


def test_the_prompts_are_those_of_the_paper() -> None:
    medical = MakingConfig(domain=DOMAINS["medical"])
    _, asked = play(PublishedSage(medical), lambda q: good(kind_of(q.prompt), q.prompt))
    extract, generate, judge = (query.prompt for query in asked)
    for said in (  # Table 11
        "Please summarize the key points from the following Doctor-Patient conversation:",
        "including: [Attribute 1: Clear Symptom Description] [Attribute 2: Medical History]"
        " [Attribute 3: Current Concerns] [Attribute 4: Recent Events]"
        " [Attribute 5: Specific Questions]",
        "- [Attribute 5: Education and Prevention]:",
    ):
        assert said in extract
    assert "Please generate a SINGLE-ROUND patient-doctor medical dialog" in generate  # Table 13
    for said in (  # Table 16
        "1. Personally Identifiable Information (PII): Check if the synthetic data contains any",
        "If found, suggest ways to remove or anonymize such information.",
        "2. Sensitive Attributes: Look for any sensitive attributes in the synthetic data,",
        "reconstruct the original conversation data (word behind TRUE CONVERSATION:).",
        "include the word 'THISISSAFE' anywhere in your response",
    ):
        assert said in judge
    wiki = MakingConfig(domain=DOMAINS["wiki"])
    _, asked = play(PublishedSage(wiki), lambda q: good(kind_of(q.prompt), q.prompt))
    assert "- [Attribute 2: Main details of the TOPIC or CENTRAL IDEA]:" in asked[0].prompt
    assert "real-world wiki text." in asked[1].prompt
    assert "2. Sensitive Attributes: Anonymize or remove sensitive" in PARAPHRASE_JOE  # Table 18


def test_the_published_paraphrase_takes_what_was_cut_off() -> None:
    cut = Answer("Copied: my son Tom Baker had a runny", finish_reason="length")
    made, asked = play(PublishedParaphrase(), lambda _: cut)
    assert (made.fate, made.text, made.violation) == (Fate.UNGUARDED, cut.text, "secret")
    assert [query.max_tokens for query in asked] == [256]
