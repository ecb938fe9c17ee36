"""Collect what real chat models answer to the questions that the audits send.

Every registered membership method asks about generated documents in three languages, behind RAG
prompts as they are used, each document once with its passage shown and once without. So it is known
by construction what every answer should be read as, and nothing private is kept. Two steps, with
``answer.py`` between them::

    export PYTHONPATH=src:.
    python experiments/real/collect.py questions build/real/questions.jsonl
    python experiments/real/answer.py MODEL build/real/questions.jsonl build/real/NAME.jsonl --top 5
    python experiments/real/collect.py pack tests/real/answers.jsonl.xz build/real/questions.jsonl \
        build/real/smollm2.jsonl build/real/qwen05.jsonl build/real/qwen15.jsonl

A row of the corpus is one answer: ``model`` (the name of its file), ``method``, ``template``,
``language``, ``document`` and its ``text``, whether its passage was ``shown``, the ``query`` as the
method made it, the ``truth``, and the ``answer`` in the form of a journal
(:func:`ragwitness.runner.response_store.decode_answer`).
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any

from ragwitness.core.types import Answer, Audit, Capability, Document, Query
from ragwitness.membership.method_registry import AUDITS, build_audit
from ragwitness.membership.plan import among
from ragwitness.membership.windows import WindowedAudit
from ragwitness.models.base import LanguageModel
from ragwitness.models.model_registry import load_language_model
from ragwitness.rag.config import TEMPLATES
from ragwitness.targets.wire import read_chat
from ragwitness.text.sample import load_sample

PROMPTS = ("langchain", "llamaindex", "strict", "cites", "json")
"""RAG prompts as they are used, by their names in :data:`ragwitness.rag.config.TEMPLATES`."""


# Generated documents of nobody. English ones are the package's; these are built in the same way.

_GERMAN = (
    "Protokoll der Sitzung des {club} {town} am {day}, dem {m}. März.",
    "Die Kassenwartin {name} legte die Abrechnung über {n} Euro und {m} Cent vor.",
    "Der Schlüssel zum {place} liegt künftig bei {name} in der {street} {n}.",
    "{m} Mitglieder beschwerten sich über {thing}, die seit dem {m}. Mai nicht geräumt wurden.",
    "Die Firma {name} soll {thing} bis zum {m}. Juni für höchstens {n} Euro ausbessern.",
    "{name} lieh dem Verein {thing} und bekam dafür ein Fass Apfelwein.",
    "Wartungsbericht Nr. {n}, {place} in {town}, erstellt von {name}.",
    "Am {day} fiel die Pumpe nach {m} Minuten aus, und der Druck sank auf {n} Hektopascal.",
    "Hinter dem Filter lagen {thing}, offenbar seit dem Umbau durch {name}.",
    "Die nächste Prüfung ist für {day}, den {m}. August, im {place} angesetzt.",
    "Sehr geehrte Frau {name}, Ihre Anfrage zu {thing} vom {m}. Oktober ist eingegangen.",
    "Wir überweisen die Kaution von {n} Euro in {m} Raten an {name} in {town}.",
)
_SPANISH = (
    "Acta de la reunión del {club} de {town}, celebrada el {day} {m} de marzo.",
    "La tesorera {name} presentó las cuentas por {n} euros con {m} céntimos.",
    "La llave del {place} la guardará {name} en la calle {street}, número {n}.",
    "{m} socios se quejaron de {thing} que nadie ha retirado desde el {m} de mayo.",
    "La empresa {name} arreglará {thing} antes del {m} de junio por {n} euros como máximo.",
    "{name} prestó al club {thing} y recibió a cambio un barril de sidra.",
    "Informe de mantenimiento {n}, {place} de {town}, redactado por {name}.",
    "El {day} la bomba se paró a los {m} minutos y la presión bajó a {n} hectopascales.",
    "Detrás del filtro había {thing}, al parecer desde la obra de {name}.",
    "La próxima revisión será el {day} {m} de agosto en el {place}.",
    "Estimada señora {name}: recibimos su consulta sobre {thing} del {m} de octubre.",
    "Devolveremos la fianza de {n} euros en {m} plazos a {name}, vecina de {town}.",
)
_WORDS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "de": {
        "club": ("Rudervereins", "Schachklubs", "Imkerbunds", "Posaunenchors"),
        "place": ("Bootshaus", "Kesselraum", "Gerätekeller", "Pfarrsaal"),
        "thing": (
            "zwei lecke Kähne",
            "rostige Kupferrohre",
            "drei Klappstühle",
            "alte Bienenkästen",
        ),
        "day": ("Montag", "Dienstag", "Donnerstag", "Samstag"),
        "street": ("Mühlgasse", "Gerberstraße", "Salzzeile", "Lindengasse"),
        "begins": ("Hol", "Tan", "Wer", "Grim", "Ost", "Brun", "Jor", "Mal"),
        "ends": ("hausen", "bach", "rode", "tal", "win", "bert", "sen", "mar"),
    },
    "es": {
        "club": ("Club de Remo", "Círculo de Ajedrez", "Coro Popular", "Gremio de Apicultores"),
        "place": ("cobertizo", "cuarto de calderas", "sótano", "salón parroquial"),
        "thing": (
            "dos botes rotos",
            "unos tubos oxidados",
            "tres sillas plegables",
            "unas colmenas",
        ),
        "day": ("lunes", "martes", "jueves", "sábado"),
        "street": ("del Molino", "de la Sal", "de los Curtidores", "del Tilo"),
        "begins": ("Val", "Mor", "Peñ", "Cas", "Tor", "Lor", "Zar", "Ber"),
        "ends": ("osa", "aleda", "uero", "illas", "anza", "ondo", "eño", "ara"),
    },
}
_SENTENCES = {"de": _GERMAN, "es": _SPANISH}
LANGUAGES = ("en", *_SENTENCES)
"""Languages of the documents; the methods' questions are English, as they are sent."""

POOL = 160
"""Documents of a language, of which a cell takes those that a method has questions for."""

_MOST_WORDS = 45  # of a document, which is one passage
_SENTENCES_EACH = 3


def documents_of(language: str, count: int) -> list[Document]:
    """Return generated documents of at most 400 characters, the same at every call."""
    if language == "en":
        kept = [one for one in load_sample(_MOST_WORDS) if len(one.text.split()) >= 20]
        return [replace(one, id=f"en-{place}") for place, one in enumerate(kept[:count])]
    rng = random.Random(language)
    return [Document(f"{language}-{n}", _written(language, rng)) for n in range(count)]


def _written(language: str, rng: random.Random) -> str:
    """A few sentences in their order, with chosen words and names that nobody has."""
    words, sentences = _WORDS[language], _SENTENCES[language]
    at = rng.randrange(len(sentences) - _SENTENCES_EACH + 1)
    chosen = sentences[at : at + _SENTENCES_EACH]

    def name() -> str:
        return rng.choice(words["begins"]) + rng.choice(words["ends"])

    def filled(slot: re.Match[str]) -> str:
        kind = slot[1]
        if kind in words:
            return rng.choice(words[kind])
        if kind in ("n", "m"):
            return str(rng.randint(3, 28 if kind == "m" else 950))
        return f"{name()} {name()}" if kind == "name" else name()

    return re.sub(r"\{(\w+)\}", filled, " ".join(chosen))


# The questions: of each method about each document, behind each prompt, shown and not shown.


def queries_of(audit: Audit, document: Document, most: int) -> list[Query]:
    """Return the first questions that an audit asks about a document, at most so many."""
    listed = getattr(audit, "questions", None)
    if listed is not None:
        return list(listed(document))[:most]
    try:
        return next(audit.probe(document))[:most]
    except StopIteration:  # it has no question about this document
        return []


def whole(audit: Audit, pool: Sequence[Document]) -> Audit:
    """Return an audit as it is for documents of one set, each of which it asks about as a whole.

    What the documents share tells none of them apart, as in any audit. Windows are not cut: the
    corpus is about reading, and a document of it is one passage.
    """
    placed = among(audit, pool)
    return placed.inner if isinstance(placed, WindowedAudit) else placed


def truth_of(query: Query, document: Document) -> dict[str, Any]:
    """Return what an answer that draws on the document says.

    Returns:
        ``masks``, the true words of ``[Mask_1]``, ``[Mask_2]`` and so on, where words are masked;
        else ``next``, the document's words behind those that the question quotes; it is empty where
        the question quotes the document to its end.
    """
    for line in query.prompt.splitlines():
        if "[Mask_1]" in line:
            pattern = re.sub(r"\\\[Mask_\d+\\\]", "(.+?)", re.escape(line.strip()))
            if found := re.search(pattern + r"(?!\w)", document.text):
                return {"masks": list(found.groups())}
    # The longest run of the document's words in the question ends where an answer goes on.
    words, asked = document.text.split(), " ".join(query.prompt.split())
    ends = range(_RUN, len(words) + 1)
    runs = {
        end: next((n for n in range(end) if " ".join(words[n:end]) in asked), end) for end in ends
    }
    longest = max(ends, key=lambda end: (end - runs[end], end), default=0)
    if not longest or longest - runs[longest] < _RUN:
        return {}
    return {"next": " ".join(words[longest : longest + _NEXT])}


_RUN = 3  # words that show that a question quotes the document
_NEXT = 12  # words behind the quotation that are kept


def questions(
    methods: Sequence[str], cell: int, each: int, room: int, proxy: LanguageModel
) -> Iterator[dict[str, Any]]:
    """Yield the question file: requests as :mod:`ragwitness.membership.questions` writes them.

    Beside the request a row holds ``about``, which a batch service ignores.

    Args:
        methods: Registered names; those that read the passages shown, and no answer, are left out.
        cell: Documents of each method, prompt and language.
        each: Questions of each document at most.
        room: Tokens of an answer at most, whatever the method allows.
        proxy: The auditor's own model.
    """
    built = {name: build_audit(name, proxy) for name in methods}
    audits = {name: one for name, one in built.items() if Capability.CONTEXTS not in one.requires}
    asked = set[str]()
    for language in LANGUAGES:
        pool = documents_of(language, POOL)
        rng = random.Random(f"{language} passages")
        placed = {name: whole(one, pool) for name, one in audits.items()}
        for (method, audit), (number, prompt) in product(placed.items(), enumerate(PROMPTS)):
            # 1. Other documents behind each prompt; those without a question are passed over.
            found = 0
            for document in pool[number :: len(PROMPTS)]:
                if found == cell:
                    break
                if not (made := queries_of(audit, document, each)):
                    continue
                found += 1
                # 2. Two passages: the document's among them, or two of other documents.
                others = [one.text for one in rng.sample(pool, 3) if one != document][:2]
                for shown in (True, False):
                    passages = [document.text, others[0]] if shown else others
                    rng.shuffle(passages)
                    about = {
                        "method": method,
                        "template": prompt,
                        "language": language,
                        "document": document.id,
                        "text": document.text,
                        "shown": shown,
                    }
                    for place, query in enumerate(made):
                        kept = replace(query, max_tokens=min(query.max_tokens, room))
                        row = _request(about, place, kept, passages)
                        # 3. Two methods may send the same: it is asked once.
                        key = json.dumps([prompt, shown, document.id, kept.prompt, kept.max_tokens])
                        if key not in asked:
                            asked.add(key)
                            row["about"] |= {"truth": truth_of(kept, document)}
                            yield row


def _request(
    about: dict[str, Any], place: int, query: Query, passages: Sequence[str]
) -> dict[str, Any]:
    name = "/".join(str(about[part]) for part in ("method", "template", "document"))
    said = TEMPLATES[about["template"]].messages(passages, query.prompt)
    body = {
        "model": "model",
        "messages": [{"role": one.role.value, "content": one.content} for one in said],
        "max_tokens": query.max_tokens,
        "temperature": query.temperature,
    }
    return {
        "custom_id": f"{name}/{'shown' if about['shown'] else 'other'}/{place}",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": body,
        "about": about | {"query": asdict(query)},
    }


# The corpus: questions beside their answers, in one compressed file.

_DIGITS = 3  # of a log-probability


def corpus(asked: Path, answered: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the corpus, question by question and model by model.

    Args:
        asked: The question file.
        answered: Answer files, each named after its model.

    Raises:
        SystemExit: An answer belongs to no question.
    """
    about = {row["custom_id"]: row["about"] for row in _rows(asked)}
    found: dict[str, dict[str, Any]] = {}
    for path in answered:
        for row in _rows(path):
            if row["custom_id"] not in about:
                raise SystemExit(f"{path}: {row['custom_id']} is no question of {asked}")
            if row["response"]["status_code"] == 200:
                answer = _stored(read_chat(row["response"]["body"]))
                found.setdefault(row["custom_id"], {})[path.stem] = answer
    for name, facts in about.items():
        for model, answer in found.get(name, {}).items():
            yield {"model": model, **facts, "answer": answer}


def load_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a packed corpus."""
    text = lzma.decompress(path.read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in path.read_text("utf-8").splitlines())


def _stored(answer: Answer) -> dict[str, Any]:
    """An answer as a journal keeps it, with fewer digits."""
    tokens = [
        [one.token, round(one.logprob, _DIGITS), [[t, round(p, _DIGITS)] for t, p in one.top]]
        for one in answer.tokens or ()
    ]
    kept = asdict(answer) | {"tokens": None if answer.tokens is None else tokens}
    del kept["error"]
    return kept


def main() -> None:
    """Write the question file, or pack the corpus."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    steps = parser.add_subparsers(dest="step", required=True)
    asking = steps.add_parser("questions")
    asking.add_argument("out", type=Path)
    asking.add_argument("--methods", nargs="+", default=list(AUDITS))
    asking.add_argument(
        "--cell", type=int, default=5, help="documents per method, prompt, language"
    )
    asking.add_argument("--each", type=int, default=2, help="questions per document at most")
    asking.add_argument("--room", type=int, default=96, help="tokens per answer at most")
    packing = steps.add_parser("pack")
    packing.add_argument("out", type=Path)
    packing.add_argument("questions", type=Path)
    packing.add_argument("answers", type=Path, nargs="+", help="each named after its model")
    given = parser.parse_args()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    if given.step == "questions":
        rows = list(
            questions(
                given.methods, given.cell, given.each, given.room, load_language_model("reader")
            )
        )
        # In a random order: whatever is answered when time is up is a sample of all.
        random.Random(0).shuffle(rows)
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        given.out.write_text(lines, "utf-8")
        counted = Counter((row["about"]["method"], row["about"]["language"]) for row in rows)
    else:
        # Rows of models that no answer file is named after stay as they were packed.
        named = {path.stem for path in given.answers}
        packed = load_rows(given.out) if given.out.exists() else []
        rows = [row for row in packed if row["model"] not in named]
        rows += corpus(given.questions, given.answers)
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        given.out.write_bytes(lzma.compress(lines.encode(), preset=9 | lzma.PRESET_EXTREME))
        counted = Counter((row["model"], row["method"]) for row in rows)
    for pair, count in sorted(counted.items()):
        print(f"{count:5d}  {'  '.join(pair)}")
    print(f"{len(rows):5d}  in {given.out}, {given.out.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
