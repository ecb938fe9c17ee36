"""SAGE with the paper's prompts (Tables 11 to 16) and the loop of its code, for evaluation only.

- "Until safe" is not enforced: after five judgements and four rewrites the last rewrite is kept
  without a word.
- THISISSAFE ends the conversation in any case of letters. What the last judgement holds between
  its markers is kept, whether it says safe or not; its author has seen the record.
- **A judgement without the markers keeps the rewriter's last message, less its first sixteen
  characters. Where the first judgement says the bare word, that is the opening message, which
  holds the true record**: it goes into the index word for word.
- Answers end after 256 tokens, and nobody looks whether they were cut off.

The agents' system messages open each prompt, and what was said so far follows by name. None of our
conditions is enforced; the one that the text breaks is noted beside it. The loop is held against
the program by ``tests/golden/test_authors.py``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ragwitness.core.types import Document
from ragwitness.synthesis.agents import (
    EXTRACTOR,
    GENERATOR,
    JUDGE,
    REWRITER,
    MakingConfig,
    ask,
)
from ragwitness.synthesis.generator import Fate, Steps, Synthesis
from ragwitness.synthesis.guard import SyntheticGuard
from ragwitness.synthesis.response_parsing import BEGIN, END, SAFE, Attribute
from ragwitness.synthesis.sage import Sage

_TURNS = 5
_COPIED = re.compile(f"{re.escape(BEGIN)}(.*?){re.escape(END)}", re.DOTALL)
_CUT = 16  # characters: "GENERATED DATA:" and what follows it, whatever they are

# Table 11, information extractor on HealthCareMagic.
_PATIENT = (
    "Clear Symptom Description",
    "Medical History",
    "Current Concerns",
    "Recent Events",
    "Specific Questions",
)
_DOCTOR = (
    "Clear Diagnosis or Assessment",
    "Reassurance and Empathy",
    "Treatment Options and Explanations",
    "Follow-up and Next Steps",
    "Education and Prevention",
)
_EXTRACT_MEDICAL = """\
Please summarize the key points from the following Doctor-Patient conversation:

{input_context}

Provide a summary for the Patient's information, including: {patient}

Then, provide a summary for the Doctor's information, including: {doctor}

Please format your response as follows:

Patient:
{patient_form}

Doctor:
{doctor_form}

Please provide a concise summary for each attribute, capturing the most important information \
related to that attribute from the conversation."""
# Table 12, information extractor on Wiki-PII; of other records, with "wiki" replaced.
_WIKI = (
    "Clear TOPIC or CENTRAL IDEA of the wiki text",
    "Main details of the TOPIC or CENTRAL IDEA",
    "Important facts, data, events, or viewpoints",
)
_EXTRACT_WIKI = """\
Please summarize the key points from the following {kind} text:

{input_context}

Provide a summary of the knowledge from the {kind} text, including: {attributes}

Please format your response as follows:

{form}

Please provide a concise summary for each attribute, capturing the most important information \
related to that attribute from the conversation. And remember to maintain logical order and \
accuracy."""
# Table 13, data generator on HealthCareMagic.
_GENERATE_MEDICAL = """\
Here is a summary of the key points:

{input_attributes}

Please generate a SINGLE-ROUND patient-doctor medical dialog using ALL the key points provided. \
The conversation should look like a real-world medical conversation and contain ONLY ONE question \
from the patient and ONE response from the doctor.

The format should be as follows:

Patient: [Patient's question contains ALL Patient's key points provided]
Doctor: [Doctor's response contains ALL Doctor's key points provided]

Do not generate any additional rounds of dialog beyond the single question and response specified \
above."""
# Table 14, data generator on Wiki-PII.
_GENERATE_WIKI = """\
Here is a summary of the key points:

{input_attributes}

Please generate a {kind} text using ALL the key points provided. The data should look like a \
real-world {kind} text."""
# Table 15, rewriting agent, and its first message.
_CATHY = """\
You are a synthetic data generator and your role is to generate synthetic data based on provided \
feedback (words after SUGGESTIONS:) and to make sure the synthetic data is of high utility and \
privacy-preserving, you should put your generated data after the word 'GENERATED DATA:'."""
_MESSAGE = """\
Hi Joe, I will give you the real data(TRUE DATA) and synthetic data(GENERATED DATA), please help \
me assess and provide suggestions from the privacy level of TRUE DATA:{true_con}
 GENERATED DATA:{syn_con}"""
# Tables 16 and 18: the six aspects, which differ in what is to be done about each.
_ASPECTS = """\
1. Personally Identifiable Information (PII): Check if the synthetic data contains any PII, such \
as names, addresses, phone numbers, email addresses, or other information that can directly \
identify an individual. If found, {0}

2. Sensitive Attributes: {1} including but not limited to race, ethnicity, religion, political \
affiliation, sexual orientation, health status, or financial information{2}

3. Contextual Privacy: Evaluate if the synthetic data, when combined with other publicly available \
information, could potentially lead to the identification of individuals or reveal sensitive \
information about them. If such risks are identified, {3} these contextual privacy issues.

4. Data Linkage: Assess if the synthetic data can be linked with other datasets to infer \
additional sensitive information about individuals. If linkage risks are found, {4} techniques \
such as data perturbation or aggregation to reduce these risks.

5. Semantic Consistency: Ensure that the privacy-preserving transformations applied to the \
synthetic data maintain semantic consistency and do not introduce any unintended biases or \
inaccuracies.{5}

6. Original Data Recovery: Analyze the synthetic data to determine if it could potentially allow \
attackers to recover or reconstruct the original conversation data{6}. If such vulnerabilities are \
identified, {7} introduce additional randomness, noise, or perturbations to break direct \
correspondences between the synthetic data and the original conversation, making recovery attempts \
more difficult."""
# Table 16, privacy agent.
_JOE = f"""\
You are a privacy evaluation agent and your role is to provide comprehensive feedback on the \
synthetic data generated by the synthetic data generator. To be specific, you should analyze the \
synthetic data (the data after the word 'GENERATED DATA:') from the following aspects:

{
    _ASPECTS.format(
        "suggest ways to remove or anonymize such information.",
        "Look for any sensitive attributes in the synthetic data,",
        ". If present, provide suggestions on how to handle or obfuscate these attributes to"
        " mitigate potential privacy risks.",
        "recommend strategies to mitigate",
        "suggest",
        " If inconsistencies are detected, provide feedback on how to maintain the balance between"
        " privacy protection and data utility.",
        " (word behind TRUE CONVERSATION:)",
        "suggest methods to",
    )
}

Only if the generated data is completely safe and satisfies all the above privacy requirements and \
prevents the recovery of the original data, include the word 'THISISSAFE' anywhere in your \
response to signal the end of the evaluation process. Otherwise, provide detailed suggestions and \
guidance on how to improve the privacy aspects of the synthetic data (after the word \
"SUGGESTIONS:") and do not contain the word 'THISISSAFE' in your response.

If the data is deemed safe, please also extract the safe synthetic data (the text after 'GENERATED \
CONVERSATION:') and return it in the following format: SAFE_DATA: \
[BEG]<safe_synthetic_data>[END]THISISSAFE

Note that your job is only to assess the privacy level of generated data, you can answer either \
suggestions (SUGGESTIONS) or this data is safe (SAFE_DATA: \
[BEG]<safe_synthetic_data>[END]THISISSAFE), does not provide irrelevant answers."""
# Table 17, paraphrase; it asks to extract and forbids to edit.
PARAPHRASE = """\
Given the following context, extract the useful or important part of the Context.

Remember, *DO NOT* edit the extracted parts of the context.

> Context: >>> {input_context} >>>

Extracted relevant parts:"""
# Table 18, Para(Joe).
PARAPHRASE_JOE = f"""\
Context: {{input_context}}

Please rewrite the given context, ensuring it does not contain any private or sensitive \
information. Follow these guidelines:

{
    _ASPECTS.format(
        "remove or anonymize such information",
        "Anonymize or remove sensitive attributes",
        ".",
        "try to mitigate",
        "use",
        "",
        "",
        "try to",
    )
}

Please provide the rewritten context that addresses these privacy concerns while maintaining the \
essential meaning and utility of the information."""


def as_published(config: MakingConfig | None) -> MakingConfig:
    """Return settings with the published limit of an answer, asked once, whatever comes back."""
    config = config or MakingConfig()
    asking = replace(config.asking, max_tokens=256, attempts=1, published=True)
    return replace(config, asking=asking)


def unchecked(made: Synthesis, guard: SyntheticGuard) -> Synthesis:
    """Return a text as published, with the condition that it breaks beside it."""
    violation = guard.violation(made.text)
    return replace(made, fate=Fate.UNGUARDED, violation=violation.kind if violation else None)


class PublishedSage(Sage):
    """The paper's prompts in the published loop.

    Args:
        config: Settings; ``rounds`` and the limit of an answer are the published ones.
        stage: 1 ends before the agents, 2 is all of it.
    """

    def __init__(self, config: MakingConfig | None = None, stage: int = 2) -> None:
        super().__init__(replace(as_published(config), rounds=_TURNS if stage == 2 else 0))

    @property
    def name(self) -> str:
        """``sage-published``, or ``stage-1-published`` without the agents."""
        return "sage-published" if self.config.rounds else "stage-1-published"

    def describe(self) -> dict[str, str]:
        """Return every setting, and what to beware of."""
        return {
            **super().describe(),
            "prompts": "the paper's, Tables 11 to 16",
            "warning": "as published: unsafe texts are kept without a word; for evaluation only",
        }

    def most(self, records: int) -> int:
        """Return the most queries."""
        return max(1, len(self.config.domain.parts)) + records * (
            2 + max(0, 2 * self.config.rounds - 1)
        )

    def attributes(
        self, documents: Sequence[Document], guard: SyntheticGuard
    ) -> Steps[tuple[Attribute, ...]]:
        """Identify the attributes, where the paper prints none."""
        domain = self.config.domain
        # The paper's own five of each speaker and three of wiki; --attributes takes the first m.
        m = len(domain.attributes[0]) if domain.attributes else 0
        if domain.name == "medical" and m:
            own = [("Patient", one) for one in _PATIENT[:m]]
            return (*own, *(("Doctor", one) for one in _DOCTOR[:m]))
        if domain.name == "wiki" and m:
            return tuple(("", one) for one in _WIKI[:m])
        return (yield from super().attributes(documents, guard))

    def _make(
        self,
        document: Document,
        attributes: Sequence[Attribute],
        guard: SyntheticGuard,
    ) -> Steps[Synthesis]:
        made = Synthesis(document.id, Fate.UNGUARDED)
        text = yield from self._stage_one(document, attributes)
        if not self.config.rounds:
            return unchecked(replace(made, text=text), guard)
        written = _MESSAGE.format(true_con=document.text, syn_con=text)
        said = [f"Cathy: {written}"]
        for turn in range(1, _TURNS + 1):
            made = replace(made, rounds=turn)
            answer = yield from self._say("\n\n".join([_JOE, *said, "Joe:"]), JUDGE, turn)
            said.append(f"Joe: {answer}")
            if turn == _TURNS or SAFE.lower() in answer.lower():
                break
            # Rewritten beside the record.
            prompt = "\n\n".join([_CATHY, *said, "Cathy:"])
            written = yield from self._say(prompt, REWRITER, turn)
            said.append(f"Cathy: {written}")
        if copied := _COPIED.search(answer):
            return unchecked(replace(made, text=copied.group(1)), guard)
        # Defect kept: of the opening message too, which holds the record.
        reason = "no copy in the last judgement: the rewriter's last message is kept"
        return unchecked(replace(made, text=written[_CUT:], reason=reason), guard)

    def _stage_one(self, document: Document, attributes: Sequence[Attribute]) -> Steps[str]:
        """Tables 11 to 14: a summary by attribute, whole as it came, then a text from it."""
        medical = self.config.domain.name == "medical"
        kind = "wiki" if self.config.domain.name in ("wiki", "auto") else self.config.domain.name
        if medical:
            patient = [name for part, name in attributes if part == "Patient"]
            doctor = [name for part, name in attributes if part == "Doctor"]
            prompt = _EXTRACT_MEDICAL.format(
                input_context=document.text,
                patient=_listed(patient),
                doctor=_listed(doctor),
                patient_form=_form(patient),
                doctor_form=_form(doctor),
            )
        else:
            names = [name for _, name in attributes]
            prompt = _EXTRACT_WIKI.format(
                kind=kind,
                input_context=document.text,
                attributes=_listed(names),
                form=_form(names),
            )
        how = self.config.asking
        points = yield from ask(prompt, str.strip, how, role=EXTRACTOR)
        template = _GENERATE_MEDICAL if medical else _GENERATE_WIKI
        prompt = template.format(kind=kind, input_attributes=points)
        return (yield from ask(prompt, str.strip, how, role=GENERATOR))

    def _say(self, prompt: str, role: str, turn: int) -> Steps[str]:
        how = self.config.asking
        (answer,) = yield [how.query(prompt, role, how.seed + turn)]
        return answer.text  # an answer that failed is an empty one: the loop goes on


def _listed(names: Sequence[str]) -> str:
    return " ".join(f"[Attribute {n}: {name}]" for n, name in enumerate(names, 1))


def _form(names: Sequence[str]) -> str:
    return "\n".join(f"- [Attribute {n}: {name}]:" for n, name in enumerate(names, 1))
