"""Which units an audit has, and what each is called."""

import math
import re
from dataclasses import replace

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.membership.method_registry import build_audit, configure
from ragwitness.membership.plan import (
    SHADOW_STAGES,
    AuditPlan,
    Systems,
    among,
    auxiliary_of,
    stages_of,
    without_drafts,
)
from ragwitness.membership.prepared import PreparedAudit
from ragwitness.membership.shadow import ShadowConfig, build_shadow, split_auxiliary
from ragwitness.models import model_registry as registry
from ragwitness.runner.score_store import audit_identity, unit_id
from ragwitness.text.sample import load_sample
from tests.support.copier import Copier

_QUOTED = re.compile('or [\u201c"]\u2026?(.+?) \u2026')


def _documents(n: int, prefix: str) -> tuple[Document, ...]:
    return tuple(Document(f"{prefix}{i}", f"{prefix} text number {i}") for i in range(n))


PLAN = AuditPlan(
    documents=_documents(5, "asked"),
    known_out=_documents(4, "out"),
    known_in=_documents(3, "in"),
    auxiliary=_documents(40, "aux"),
    shadow=ShadowConfig(audited=10),
)


def test_stages_are_those_that_the_shadow_system_is_built_from(monkeypatch) -> None:
    monkeypatch.setattr(registry, "load_language_model", lambda spec: Copier())
    stages = stages_of(PLAN, shadow=True)
    shadow = build_shadow(auxiliary_of(PLAN), PLAN.shadow)
    assert [stages.documents[stage] for stage in SHADOW_STAGES] == [shadow.inside, shadow.outside]
    assert list(stages.documents)[2:] == ["known outside", "known inside", "documents"]
    assert stages.documents["documents"] == PLAN.documents
    assert stages.count == 10 + 10 + 4 + 3 + 5
    # Without known-out documents the target is asked about what the shadow never saw.
    spare = stages_of(replace(PLAN, known_out=()), shadow=True).documents["known outside"]
    assert spare == split_auxiliary(auxiliary_of(PLAN), PLAN.shadow).spare
    assert not set(spare) & {*shadow.inside, *shadow.outside}
    assert not set(SHADOW_STAGES) & set(stages_of(PLAN, shadow=False).documents)


def test_the_address_of_a_unit_follows_everything_that_decides_its_score() -> None:
    def identity(name: str, proxy: str = "copier", **options: object) -> str:
        return audit_identity(build_audit(name, Copier(), configure(name, options)), proxy)

    made = [
        identity("rag-mia"),
        identity("rag-mia", template=1),
        identity("rag-mia", "another model"),
        identity("min-k"),
        identity("s2mia"),
    ]
    document = Document("a", "text")
    assert len(set(made)) == len(made)
    assert identity("rag-mia") == made[0]
    changed = [
        unit_id(made[0], "target", document),
        unit_id(made[1], "target", document),
        unit_id(made[0], "other", document),
        unit_id(made[0], "target", replace(document, id="b")),
        unit_id(made[0], "target", replace(document, text="texts")),
    ]
    assert len(set(changed)) == len(changed)
    # Nobody reads the truth, so it is no part of the unit.
    assert unit_id(made[0], "target", replace(document, member=True)) == changed[0]
    units = list(stages_of(PLAN, shadow=True).units(made[0], Systems("target", "shadow")))
    assert len({unit.id for unit in units}) == len(units)
    assert units[0].id == unit_id(made[0], "shadow", units[0].document)
    assert units[-1].id == unit_id(made[0], "target", PLAN.documents[-1])


@pytest.mark.parametrize(
    "copy",
    [
        Document("asked0", "asked text number 0"),
        Document("another-id", "asked text number 0"),
        Document("k", "ASKED Text number 0"),
        Document("k", "asked  text\n\tnumber 0 "),
        Document("k", '"Asked" (text), number 0'),
        Document("k", "as\u00adked text number\u00a00"),
    ],
    ids=["the very same", "id", "case", "spacing", "punctuation", "unseen"],
)
@pytest.mark.parametrize("part", ["known_out", "known_in"])
def test_a_copy_of_a_document_in_question_cannot_be_known(copy, part) -> None:
    with pytest.raises(InputError, match=f"'{copy.id}', there 'asked0'") as caught:
        replace(PLAN, **{part: (*_documents(3, "other"), copy)})
    assert f"--{part.replace('_', '-')}" in caught.value.message


def test_one_word_more_is_another_document_and_so_is_the_same_id() -> None:
    plan = replace(PLAN, known_out=(Document("asked0", "asked text number 0 again"),))
    assert plan.known_out[0].id == "asked0"


def test_texts_without_letters_are_compared_as_they_are() -> None:
    assert len(replace(PLAN, known_out=(Document("a", "!?"), Document("b", "?!"))).known_out) == 2


def test_copies_calibrate_once() -> None:
    known = (*_documents(4, "out"), Document("copy", "OUT text number  2"))
    documents = stages_of(replace(PLAN, known_out=known), shadow=False).documents
    assert len(documents["known outside"]) == 4


@pytest.mark.parametrize("part", ["documents", "known_out", "known_in"])
def test_two_texts_under_one_id_are_refused(part: str) -> None:
    twice = (*_documents(3, part), Document(f"{part}1", "yet another text"))
    with pytest.raises(InputError, match=f"Two texts have the id '{part}1'"):
        replace(PLAN, **{part: twice})


def test_drafts_of_one_document_are_one_piece_of_evidence() -> None:
    words = [f"w{n * 7919 % 1009}" for n in range(900)]
    texts = [" ".join(words[n : n + 60]) for n in range(0, 600, 60)]
    drafts = [Document(f"{n}v{v}", f"{t} v{v}.") for n, t in enumerate(texts) for v in (1, 2, 3)]
    # Two that begin alike and go on otherwise are two: neither is asked about its beginning.
    begun = " ".join(words)[:2048]
    grown = [Document(f"g{n}", begun + f" {n} more" * 300 * n) for n in (1, 2)]
    plan = replace(PLAN, documents=tuple(drafts[:3]), known_out=(*drafts[3:], *grown))
    stages = stages_of(plan, shadow=False)
    assert [one.id for one in stages.documents["known outside"]] == [
        *(f"{n}v1" for n in range(1, 10)),
        "g1",
        "g2",
    ]
    assert len(stages.documents["documents"]) == 3
    assert "18 of 29 known-out documents are near copies" in stages.reference.warning
    assert "2 of 3 documents in question are near copies" in stages.reference.warning
    assert stages_of(PLAN, shadow=False).reference.warning is None


@pytest.mark.parametrize("first", [0, 1])
def test_what_a_draft_shares_with_another_document_is_not_asked_about(first: int) -> None:
    footer = "This message is confidential and was written for the addressee of the letter alone."
    sample = load_sample()
    letter = "\n\n".join(one.text for one in sample[100:104])
    drafts = [Document("sent", letter), Document("draft", f"{letter}\n\n{footer}")]
    other = Document("other", f"{sample[60].text}\n\n{footer}")
    documents = (drafts[first], drafts[1 - first], other, *sample[:20])
    assert len(without_drafts(documents)) == len(documents) - 1
    audit = among(build_audit("runon", Copier()), documents)
    asked = {one.id: [query.prompt for query in audit.questions(one)] for one in documents}
    assert all(asked.values())
    assert not any("the addressee of" in prompt for prompts in asked.values() for prompt in prompts)
    # What drafts share with each other stands nowhere else, so it may be asked about.
    assert any(_QUOTED.search(prompt)[1] in letter for prompt in asked["draft"])
    # A group of drafts is one document of the background.
    assert audit.inner.elsewhere.information("zzyzx") == math.log((len(documents) + 1) / 2)


def test_one_document_is_asked_about_beside_those_that_calibrate() -> None:
    own = replace(PLAN, documents=(load_sample()[0],), known_out=(), known_in=(), auxiliary=())
    audit, _ = PreparedAudit("", own, "runon", configure("runon"), "repeat").fitted(0)
    assert audit.questions(own.documents[0])
    assert {*stages_of(own, shadow=False).reference.documents} <= {*own.every_document}
