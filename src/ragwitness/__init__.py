"""Ragwitness: audits of retrieval-augmented generation, every verdict with its error rate.

Everything public is here, loaded on first use::

    import ragwitness as rw

    target = await rw.open_target("http://127.0.0.1:8000/v1")
    plan = rw.AuditPlan(documents=rw.load_documents("mine.jsonl").documents)
    result = await rw.run_audit(plan, target, rw.SRag(rw.load_language_model("reader")))
    rw.write_html(result, Path("report.html"))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragwitness.lazy import lazy_names

if TYPE_CHECKING:
    from ragwitness.errors import RagwitnessError
    from ragwitness.membership.srag import ShadowConfig, SRag, SRagConfig
    from ragwitness.models import load_language_model
    from ragwitness.rag import LabTarget, RagConfig, build_system
    from ragwitness.rag.embedders import load_embedder
    from ragwitness.report import to_json, write_html
    from ragwitness.runs import AuditPlan, AuditResult, run_audit
    from ragwitness.targets import open_target, probe_capabilities
    from ragwitness.text import load_documents
    from ragwitness.types import (
        Answer,
        Capability,
        Decision,
        Document,
        Query,
        Score,
        Target,
        Verdict,
    )

_HOMES = {
    "Answer": "types",
    "AuditPlan": "runs",
    "AuditResult": "runs",
    "Capability": "types",
    "Decision": "types",
    "Document": "types",
    "LabTarget": "rag",
    "Query": "types",
    "RagConfig": "rag",
    "RagwitnessError": "errors",
    "SRag": "membership.srag",
    "SRagConfig": "membership.srag",
    "Score": "types",
    "ShadowConfig": "membership.srag",
    "Target": "types",
    "Verdict": "types",
    "build_system": "rag",
    "load_documents": "text",
    "load_embedder": "rag.embedders",
    "load_language_model": "models",
    "open_target": "targets",
    "probe_capabilities": "targets",
    "run_audit": "runs",
    "to_json": "report",
    "write_html": "report",
}

__all__ = [
    "Answer",
    "AuditPlan",
    "AuditResult",
    "Capability",
    "Decision",
    "Document",
    "LabTarget",
    "Query",
    "RagConfig",
    "RagwitnessError",
    "SRag",
    "SRagConfig",
    "Score",
    "ShadowConfig",
    "Target",
    "Verdict",
    "build_system",
    "load_documents",
    "load_embedder",
    "load_language_model",
    "open_target",
    "probe_capabilities",
    "run_audit",
    "to_json",
    "write_html",
]


__getattr__ = lazy_names(__name__, _HOMES)
