"""Stand-in chat services over documents: what they answer, and sixteen dialects in which they do.

The model behind is extractive: it is shown the question and the two passages that an ordinary
retriever finds, and goes on with words only where a passage, or what the question shows before
itself, holds them. Its manner is that of the small chat models in ``experiments/real``: it says a
quoted run again and runs on, fills masks, says "No." where it is unsure, and invents nothing.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

# The application: passages, a retriever, an extractive model.

_SIZE, _OVERLAP, _PASSAGES = 1000, 200, 2
_WORD = re.compile(r"\w+(?:['\u2019]\w+)*")
_QUOTED = re.compile('\u201c([^\u201c\u201d]+)\u201d|"([^"]+)"')
_MASK = re.compile(r"\[Mask_\d+\]")
_GAP = "\0"
_TAIL = 8  # words of a run that a passage must hold for the answer to run on
_BEYOND = 12  # words that are said behind a run
_DOES_NOT_KNOW = "I don't know, the passages do not say."


class Application:
    """Passages of 1,000 characters, TF-IDF of scikit-learn, the two best, an extractive answer.

    Args:
        texts: What it holds.
        in_prose: Whether masks are answered by the sentence written out, and not by a list.
    """

    def __init__(self, texts: Sequence[str], *, in_prose: bool = False) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        starts = [
            (t, s) for t in texts for s in range(0, max(1, len(t) - _OVERLAP), _SIZE - _OVERLAP)
        ]
        self._passages = [text[start : start + _SIZE] for text, start in starts]
        self._vectors = TfidfVectorizer(sublinear_tf=True, stop_words="english")
        self._matrix = self._vectors.fit_transform(self._passages)
        self._in_prose = in_prose

    def answer(self, question: str) -> str:
        """Answer a question by what is retrieved for it, and by what it shows itself."""
        scores = (self._matrix @ self._vectors.transform([question]).T).toarray().ravel()
        best = [self._passages[n] for n in scores.argsort()[::-1][:_PASSAGES]]
        # What is quoted is asked about, and so shows nothing; a text before it does.
        shown = question.rpartition("\n\n")[0] if question.startswith("Context:") else ""
        sources = [_words(text) for text in (*best, shown)]
        for manner in (self._masks, _yes_or_no, _runs, _goes_on):
            if (said := manner(question, sources)) is not None:
                return said
        return _DOES_NOT_KNOW

    def _masks(self, question: str, sources: Sequence[tuple[str, ...]]) -> str | None:
        """Fill masks where a source has the words around them."""
        paragraphs = question.split("\n\n")
        masked = [n for n, one in enumerate(paragraphs) if re.search(r"\[Mask_\d", one)]
        if not masked:
            return None
        part = "\n\n".join(paragraphs[masked[0] : masked[-1] + 1])
        numbers = [mask[0] for mask in _MASK.finditer(part)]
        words = _words(_MASK.sub(f" {_GAP} ", part))
        fills = []
        for at in (n for n, word in enumerate(words) if word == _GAP):
            before, after = words[max(0, at - 2) : at], words[at + 1 : at + 2]
            fills.append(_between(before, tuple(w for w in after if w != _GAP), sources))
        if not any(fills):
            return _DOES_NOT_KNOW
        if self._in_prose:
            given = iter(fills)
            return _MASK.sub(lambda mask: next(given) or mask[0], part)
        return "\n".join(f"{n}: {w}" for n, w in zip(numbers, fills, strict=True) if w)


@functools.lru_cache(maxsize=4096)
def _words(text: str) -> tuple[str, ...]:
    parts = re.findall(rf"{_GAP}|\S+", text)
    return tuple(word for word in parts if word == _GAP or _key(word))


def _key(word: str) -> str:
    return "".join(_WORD.findall(word)).casefold()


@functools.lru_cache(maxsize=4096)
def _keys(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(_key, words))


def _between(
    before: tuple[str, ...], after: tuple[str, ...], sources: Sequence[tuple[str, ...]]
) -> str:
    """The word that a source has between others; empty where none has."""
    for source in sources:
        keys = _keys(source)
        for at in range(len(before), len(keys)):
            ahead = keys[at + 1 : at + 1 + len(after)]
            if keys[at - len(before) : at] == _keys(before) and ahead == _keys(after):
                return source[at].strip('.,;:!?"()')
    return ""


def _behind(run: tuple[str, ...], sources: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The words that a source has behind the last words of a run."""
    tail = _keys(run)[-_TAIL:]
    for source in sources:
        keys = _keys(source)
        for at in range(_TAIL, len(keys)):
            if keys[at - _TAIL : at] == tail:
                return source[at : at + _BEYOND]
    return ()


def _yes_or_no(question: str, sources: Sequence[tuple[str, ...]]) -> str | None:
    quoted = [" ".join(found).strip() for found in _QUOTED.findall(question)]
    if not quoted or not re.search(r"yes or no|one word|only yes", question, re.IGNORECASE):
        return None
    wanted = " ".join(_keys(_words(max(quoted, key=len)))[:12])
    return "Yes." if any(wanted in " ".join(_keys(source)) for source in sources) else "No."


def _runs(question: str, sources: Sequence[tuple[str, ...]]) -> str | None:
    """Say a quoted run again, and run on where a source goes on."""
    quoted = [" ".join(found).strip() for found in _QUOTED.findall(question)]
    runs = [run for run in map(_words, quoted) if len(run) > _TAIL]
    if not runs:
        return None
    for run in reversed(runs):
        if behind := _behind(run, sources):
            return f"The correct answer is \u201c{' '.join([*run, *behind])}\u201d."
    chosen = runs[_number(question) % len(runs)]
    return f"The correct answer is \u201c{' '.join(chosen)}\u201d."


def _goes_on(question: str, sources: Sequence[tuple[str, ...]]) -> str | None:
    """Go on with the question's last words."""
    behind = _behind(_words(question), sources)
    return " ".join(behind) if behind else None


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])


# One reply of the OpenAI protocol.

_THOUGHT = (
    "Okay, the user asks about a text. Let me look at the passages. The first one may hold it, yes"
    " or no? I should compare the wording before I say anything. The question shows two versions,"
    " and they differ in one word. Let me go through the first passage again, sentence by sentence."
    " It speaks of something near to that. The second passage is about another matter. Hmm, wait."
    " If neither passage has these words, I should not make anything up. If one of them has, the"
    " answer should follow it to the letter. The instructions ask for a short answer. So I will"
    " say which one it is, and give the words as they stand there."
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as a service sees it.

    Attributes:
        body: Its JSON.
        headers: By name in small letters.
        query: Of the address.
        count: How many were asked before it.
    """

    body: Mapping[str, Any]
    headers: Mapping[str, str]
    query: str
    count: int

    @property
    def room(self) -> int:
        """Tokens that an answer may have."""
        named = self.body.get("max_completion_tokens", self.body.get("max_tokens"))
        return 512 if named is None else int(named)


@dataclass(frozen=True, slots=True)
class Reply:
    """What is sent back: a status, a body (bytes are sent as they are), and headers."""

    body: object
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def cut_to(text: str, room: int) -> tuple[str, str]:
    """Return a text that fits into a number of tokens, and why it ends; a word is 1.5 of them."""
    words = re.findall(r"\s*\S+", text)
    kept = words[: max(0, int(room / 1.5))]
    return "".join(kept), "stop" if len(kept) == len(words) else "length"


def chat(
    text: object, ends: str = "stop", logprobs: object = None, **message: object
) -> dict[str, Any]:
    """Return a chat completion."""
    said = {"role": "assistant", "content": text, **message}
    choice = {"index": 0, "message": said, "logprobs": logprobs, "finish_reason": ends}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [choice],
        "usage": {"prompt_tokens": 700, "completion_tokens": 60, "total_tokens": 760},
    }


def error(message: str, status: int, code: str, param: str | None = None, **headers: str) -> Reply:
    """Return an error in OpenAI's form."""
    kind = "rate_limit_error" if status == 429 else "invalid_request_error"
    told = {"message": message, "type": kind, "param": param, "code": code}
    return Reply({"error": told}, status, headers)


_OTHERS = ((" the", 0.02), (" and", 0.015), (" of", 0.01), (" a", 0.01))
_SURE = 0.93


def _tokens(text: str) -> list[tuple[str, float, dict[str, float]]]:
    """Each word as a token with its log-probability and alternatives."""
    sure = math.log(_SURE)
    return [
        (word, sure, {word: sure} | {other: math.log(p) for other, p in _OTHERS if other != word})
        for word in re.findall(r"\s*\S+", text)
    ]


def _new_shape(text: str) -> dict[str, Any]:
    return {
        "content": [
            {
                "token": word,
                "logprob": sure,
                "bytes": list(word.encode()),
                "top_logprobs": [{"token": t, "logprob": p} for t, p in top.items()],
            }
            for word, sure, top in _tokens(text)
        ]
    }


def _older_shape(text: str) -> dict[str, Any]:
    rows = _tokens(text)
    return {
        "tokens": [word for word, _, _ in rows],
        "token_logprobs": [sure for _, sure, _ in rows],
        "top_logprobs": [top for _, _, top in rows],
        "text_offset": [len("".join(w for w, _, _ in rows[:n])) for n in range(len(rows))],
    }


# Sixteen dialects.

KEY_VARIABLE, KEY = "BENCH_SERVICE_KEY", "k3y-of-the-bench"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a service speaks, how a user would call the audit, and what is right.

    Attributes:
        speaks: Makes the reply of a request and the model's text.
        example: Where the dialect is met.
        cause: What a refusal must say (a pattern); no refusal is right where there is none.
        refused: Whether a refusal is the one right end: this service answers nothing.
        options: What a user adds to ``audit``.
        path: Of the base URL.
        query: Of the base URL.
        lists_models: Whether it has ``/models``.
        in_prose: See :class:`Application`.
        seconds: For each answer, one at a time.
    """

    speaks: Callable[[Asked, str], Reply]
    example: str
    cause: str = ""
    refused: bool = False
    options: tuple[str, ...] = ()
    path: str = "/v1"
    query: str = ""
    lists_models: bool = True
    in_prose: bool = False
    seconds: float = 0.0


def _plain(asked: Asked, text: str) -> Reply:
    said, ends = cut_to(text, asked.room)
    return Reply(chat(said, ends, _new_shape(said) if asked.body.get("logprobs") else None))


def _without_logprobs(asked: Asked, text: str) -> Reply:
    said, ends = cut_to(text, asked.room)
    return Reply(chat(said, ends))


def _behind_thought(text: str, room: int) -> tuple[str, str]:
    """What is left of an answer whose thought is not shown in it, and why it ends."""
    thought, ends = cut_to(_THOUGHT, room)
    left = room - int(1.5 * len(thought.split()))
    return cut_to(text, left) if ends == "stop" else ("", "length")


def _o_series(asked: Asked, text: str) -> Reply:
    refused = "Unsupported {0}: '{1}' {2} with this model."
    if asked.body.get("temperature", 1) != 1:
        why = refused.format("value", "temperature", "does not support 0")
        return error(f"{why} Only the default (1) value is supported.", 400, "unsupported_value",
                     "temperature")  # fmt: skip
    if "max_tokens" in asked.body:
        why = refused.format("parameter", "max_tokens", "is not supported")
        return error(f"{why} Use 'max_completion_tokens' instead.", 400, "unsupported_parameter",
                     "max_tokens")  # fmt: skip
    if asked.body.get("logprobs"):
        return error("You are not allowed to request logprobs from this model.", 403, "forbidden")
    return Reply(chat(*_behind_thought(text, asked.room)))


def _think(asked: Asked, text: str) -> Reply:
    said, ends = cut_to(f"<think>\n{_THOUGHT}\n</think>\n\n{text}", asked.room)
    return Reply(chat(said, ends, _new_shape(said) if asked.body.get("logprobs") else None))


def _reasoning_content(asked: Asked, text: str) -> Reply:
    said, ends = _behind_thought(text, asked.room)
    return Reply(chat(said, ends, reasoning_content=cut_to(_THOUGHT, asked.room)[0]))


def _parts(asked: Asked, text: str) -> Reply:
    said, ends = cut_to(text, asked.room)
    half = len(said) // 2
    return Reply(
        chat([{"type": "text", "text": part} for part in (said[:half], said[half:])], ends)
    )


def _tool_call(asked: Asked, _text: str) -> Reply:
    call = {"name": "search_documents", "arguments": json.dumps({"query": "text"})}
    calls = [{"id": f"call_{asked.count}", "type": "function", "function": call}]
    return Reply(chat(None, "tool_calls", tool_calls=calls))


def _filtered(_asked: Asked, _text: str) -> Reply:
    return Reply(chat("", "content_filter"))


def _error_in_200(asked: Asked, text: str) -> Reply:
    if asked.count % 7 == 3:
        told = error(
            "Rate limit reached for requests. Please try again.", 429, "rate_limit_exceeded"
        )
        return Reply(told.body)
    return _plain(asked, text)


def _stream(asked: Asked, text: str) -> Reply:
    said, ends = cut_to(text, asked.room)
    pieces: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    pieces += [{"content": word} for word in re.findall(r"\s*\S+", said)]
    choices: list[dict[str, Any]] = [
        {"index": 0, "delta": piece, "finish_reason": None} for piece in pieces
    ]
    choices.append({"index": 0, "delta": {}, "finish_reason": ends})
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    lines = [f"data: {json.dumps(chunk | {'choices': [choice]})}\n\n" for choice in choices]
    body = ": ping\n\n" + "".join(lines) + "data: [DONE]\n\n"
    return Reply(body.encode(), headers={"Content-Type": "text/event-stream"})


def _azure(asked: Asked, text: str) -> Reply:
    if asked.query != "api-version=2024-10-21":
        return error("Resource not found", 404, "404")
    return _with_header("api-key", asked, text)


def _with_header(name: str, asked: Asked, text: str) -> Reply:
    if asked.headers.get(name.lower()) != KEY:
        return error(f"Access denied: missing or wrong header {name}.", 401, "401")
    return _plain(asked, text)


def _custom_header(asked: Asked, text: str) -> Reply:
    return _with_header("X-API-Key", asked, text)


def _older_logprobs(asked: Asked, text: str) -> Reply:
    said, ends = cut_to(text, asked.room)
    return Reply(chat(said, ends, _older_shape(said) if asked.body.get("logprobs") else None))


def _limited(asked: Asked, text: str) -> Reply:
    if asked.count % 25 == 4:
        return error("Rate limit reached.", 429, "rate_limit_exceeded", Retry_After="1")
    return _plain(asked, text)


def _fenced_json(asked: Asked, text: str) -> Reply:
    said = json.dumps({"answer": text}, ensure_ascii=False)
    return _without_logprobs(asked, f"```json\n{said}\n```")


_HEADER = "--header"
DIALECTS: dict[str, Dialect] = {
    "plain": Dialect(_plain, "OpenAI, vLLM, llama.cpp"),
    "temperature 1 only": Dialect(_o_series, "o-series, GPT-5", r"next:.*temperature"),
    "<think>": Dialect(_think, "vLLM and Ollama without a reasoning parser", "thought|think"),
    "reasoning_content": Dialect(_reasoning_content, "DeepSeek, vLLM", "thought|think"),
    "content as parts": Dialect(_parts, "Mistral, gateways"),
    "tool call": Dialect(_tool_call, "an agent that leaves its tools to the client",
                         r"tool", refused=True),
    "content filter": Dialect(_filtered, "Azure, Gemini gateways", r"filter", refused=True),
    "error inside a 200": Dialect(_error_in_200, "OpenRouter and other gateways"),
    "always streams": Dialect(_stream, "front ends' own endpoints", r"stream"),
    "Azure": Dialect(_azure, "Azure OpenAI", r"--header|http/", False,
                     (_HEADER, f"api-key={KEY_VARIABLE}"), "/openai/deployments/m",
                     "api-version=2024-10-21", lists_models=False),
    "custom header": Dialect(_custom_header, "API gateways", r"--header|http/", False,
                             (_HEADER, f"X-API-Key={KEY_VARIABLE}")),
    "older log-probabilities": Dialect(_older_logprobs, "text-generation servers"),
    "429, Retry-After": Dialect(_limited, "every hosted model"),
    "slow, one at a time": Dialect(_plain, "llama.cpp on a CPU; here 1 : 60", r"--timeout",
                                   options=("--timeout", "0.7"), seconds=0.2),
    "masks in prose": Dialect(_without_logprobs, "small chat models, asked by mba",
                              options=("--method", "mba"), in_prose=True),
    "JSON in fences": Dialect(_fenced_json, "apps with structured answers"),
}  # fmt: skip


# A service on the loopback.


@dataclass
class Service:
    """A running service.

    Attributes:
        address: What a user would give as the target.
        questions: Every question that came, in order.
    """

    address: str
    questions: list[str]


@contextmanager
def serving(dialect: Dialect, texts: Sequence[str]) -> Iterator[Service]:
    """Serve documents in a dialect on a free port of the loopback, until the block is left."""
    application = Application(texts, in_prose=dialect.in_prose)
    service = Service("", [])
    turn, counting = threading.Lock(), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Print nothing."""

        def do_GET(self) -> None:
            listed = {"object": "list", "data": [{"id": "m", "object": "model"}]}
            if self.path == f"{dialect.path}/models" and dialect.lists_models:
                self._send(Reply(listed))
            else:
                self._send(error("Not Found", 404, "not_found"))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            parts = urlsplit(self.path)
            if parts.path != f"{dialect.path}/chat/completions":
                self._send(error("Not Found", 404, "not_found"))
                return
            question = "\n\n".join(str(one["content"]) for one in body["messages"])
            with counting:
                count = len(service.questions)
                service.questions.append(question)
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(body, headers, parts.query, count)
            if dialect.seconds:
                with turn:  # one at a time, whoever still waits for it
                    time.sleep(dialect.seconds)
            self._send(dialect.speaks(asked, application.answer(question)))

        def _send(self, reply: Reply) -> None:
            body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            headers = {"Content-Type": "application/json"} | dict(reply.headers)
            try:
                self.send_response(reply.status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:  # nobody waits any more
                self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    query = f"?{dialect.query}" if dialect.query else ""
    model = "" if dialect.lists_models else "#m"
    service.address = f"http://127.0.0.1:{server.server_port}{dialect.path}{query}{model}"
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
