"""Reads replies of the OpenAI protocol into answers; pure functions over JSON."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any, NoReturn, TypeAlias

import httpx2

from ragwitness.core.errors import TargetResponseError
from ragwitness.core.types import Answer, TokenLogprob

JsonObject: TypeAlias = dict[str, Any]
Tokens: TypeAlias = tuple[TokenLogprob, ...]

# Stands for a piece of a character that a single token cannot spell.
_REPLACEMENT = "\ufffd"

_ROUNDING = 1e-6  # a certain token's log-probability may be this far above 0


def read_chat(body: object) -> Answer:
    """Read the body of ``/chat/completions``.

    Missing or null log-probabilities leave ``tokens`` None. A refusal is an answer: its text. A
    thought without an answer becomes the text ``<think>…`` without an end.

    Raises:
        TargetResponseError: The body is not a chat completion.
    """
    choice = _first_choice(body)
    message = choice.get("message")
    if not isinstance(message, dict):
        _malformed("the first choice has no message")
    # A refusal is a separate field, with its log-probabilities beside it.
    text, refusal = content_text(message.get("content")), message.get("refusal")
    field = "content"
    if text is None and isinstance(refusal, str):
        text, field = refusal, "refusal"
        choice = {**choice, "finish_reason": "content_filter"}
    if not text and (message.get("tool_calls") or message.get("function_call")):
        choice = {**choice, "finish_reason": "tool_calls"}
    thought = message.get("reasoning_content") or message.get("reasoning")
    if not text and isinstance(thought, str):
        text = f"<think>{thought}"
    logprobs = choice.get("logprobs")
    entry = logprobs.get(field, logprobs) if isinstance(logprobs, dict) else None
    return show_channels(_answer(body, choice, text or "", read_logprobs(entry)), body)


_CHANNELS = {
    "thoughts": re.compile("think|thought|reason"),
    "tools": re.compile("tool|function"),
    "sources": re.compile("annotation|citation|source|context|document|passage|reference"),
}
_PROTOCOL = re.compile(
    r"(?:^|_)id|object|model|role|type|created|finish_reason|index|logprobs|usage|status"
    r"|service_tier|system_fingerprint"
)


def show_channels(answer: Answer, body: object) -> Answer:
    """Return an answer with every other text of its reply, by the names of the fields."""
    passages = [("sources", passage) for passage in answer.contexts or ()]
    texts = dict.fromkeys([*_side_texts(body, "other fields"), *passages])
    beside = tuple(pair for pair in texts if pair[1].strip() and pair[1] not in answer.text)
    return replace(answer, channels=beside)


def _side_texts(value: object, channel: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield channel, value
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from _side_texts(entry, channel)
    elif isinstance(value, Mapping):
        for name, entry in value.items():
            if not _PROTOCOL.fullmatch(str(name)):
                named = (kind for kind, words in _CHANNELS.items() if words.search(str(name)))
                yield from _side_texts(entry, next(named, channel))


def read_completion(body: object) -> Answer:
    """Read the body of ``/completions``; an echoed prompt is part of the answer.

    Raises:
        TargetResponseError: The body is not a completion.
    """
    choice = _first_choice(body)
    text = choice.get("text")
    if not isinstance(text, str):
        _malformed("the first choice has no text")
    return _answer(body, choice, text, read_logprobs(choice.get("logprobs")))


def join_chunks(events: Sequence[object]) -> JsonObject:
    """Join the chunks of a stream into the body that comes without one.

    Raises:
        TargetResponseError: They are no chunks of an answer.
    """
    body: JsonObject = {}
    choices: list[JsonObject] = []
    for event in events:
        if not isinstance(event, dict):
            _malformed("an event of its stream is not an object")
        # Of fields that every chunk repeats, such as the model's name, the last value counts.
        body |= {name: value for name, value in event.items() if value is not None}
        choices += _choices(event)
    ends = [choice["finish_reason"] for choice in choices if choice.get("finish_reason")]
    # Some send the whole message behind its pieces.
    messages = [choice for choice in choices if choice.get("message") and not choice.get("delta")]
    if not messages or any(choice.get("delta") for choice in choices):
        deltas = [c | {"message": c.get("delta") or {"content": c.get("text")}} for c in choices]
        choices = messages[-1:] or deltas
    return body | {
        "choices": [(_joined(choices) or {}) | {"finish_reason": ends[-1] if ends else None}]
    }


def _joined(pieces: Sequence[Any]) -> Any:
    """Join a field's pieces: texts and lists go on, objects by field; else the last one counts."""
    pieces = [piece for piece in pieces if piece is not None]
    kinds = {type(piece) for piece in pieces}
    if kinds == {dict}:
        names = dict.fromkeys(name for piece in pieces for name in piece)
        return {name: _joined([piece.get(name) for piece in pieces]) for name in names}
    if kinds == {list}:
        return [entry for piece in pieces for entry in piece]
    if kinds and kinds <= {str, list}:
        return join_texts([content_text(piece) or "" for piece in pieces])
    return pieces[-1] if pieces else None


def join_texts(pieces: Sequence[str]) -> str:
    """Join the texts of a stream's events.

    Some services repeat the text so far with every event, or the whole text with the last one:
    then the last event has all of it.
    """
    pieces = [piece for piece in pieces if piece]
    *before, last = pieces or [""]
    begun = "".join(before)
    repeated = len(last) > 7 and last == begun
    # Two short pieces may begin alike by chance. A text may be begun anew, and then grow again.
    if len(before) > 1 or len(begun) > 2:
        grown = sum(after.startswith(piece) for piece, after in pairwise(pieces))
        enough = min(len(pieces[0]), 7) if grown == len(before) else 7
        repeated = repeated or (grown > 0.5 * len(before) and len(last) > enough)
    # The halves of a character beyond the first plane may come in two events.
    joined = (last if repeated else begun + last).encode("utf-16", "surrogatepass")
    return joined.decode("utf-16", "replace")


def read_logprobs(entry: object) -> Tokens | None:
    """Read log-probabilities in either shape of the protocol, wherever they stand.

    Args:
        entry: A list of entries with ``token`` and ``logprob``, an object that holds one as
            ``content``, or one with parallel lists ``tokens`` and ``token_logprobs``.

    Returns:
        None where there are none.

    Raises:
        TargetResponseError: They are there, but cannot be read.
    """
    if isinstance(entry, dict) and entry.get("content") is not None:
        entry = entry["content"]
    if isinstance(entry, dict):
        return _completion_tokens(entry)
    return _chat_tokens(entry) if isinstance(entry, list) else None


def read_models(body: object) -> list[str]:
    """Read the body of ``/models``: the names, in order.

    Raises:
        TargetResponseError: The body is not a list of models.
    """
    data = body.get("data") if isinstance(body, dict) else None
    if not isinstance(data, list):
        _malformed("there is no list of models")
    names = (entry.get("id") for entry in data if isinstance(entry, dict))
    return [name for name in names if isinstance(name, str)]


def drop_before(tokens: Sequence[TokenLogprob], text: str) -> Tokens:
    """Return the tokens of an echoed text, without start tokens before it.

    Empty where they are not the text's: an endpoint may ignore ``echo``.
    """
    at = 0
    while at < len(tokens) and tokens[at].token not in text:
        at += 1
    # Start tokens are not part of the text; what follows them must begin it.
    echoed = tuple(tokens[at:])
    spelled = sum(len(token.token) for token in echoed)
    # Not an equality: characters split between tokens are spelled differently.
    return (
        echoed if echoed and text.startswith(echoed[0].token) and 2 * spelled >= len(text) else ()
    )


def drop_after(tokens: Sequence[TokenLogprob], text: str) -> Tokens:
    """Return the tokens of an echoed text without what was written after it, at most one token."""
    # Parts of characters spell more than the text: its length says nothing of its end.
    if any(_REPLACEMENT in token.token for token in tokens) and _REPLACEMENT not in text:
        return tuple(tokens if text.endswith(tokens[-1].token) else tokens[:-1])
    ends = accumulate(len(token.token) for token in tokens)
    return tuple(t for t, end in zip(tokens, ends, strict=True) if end - len(t.token) < len(text))


def _malformed(what: str) -> NoReturn:
    raise TargetResponseError(
        f"The target answered with JSON of another shape: {what}.",
        "It must speak the OpenAI protocol; check the base URL.",
    )


def _first_choice(body: object) -> JsonObject:
    if choices := _choices(body):
        return choices[0]
    if isinstance(body, dict) and body.get("choices") == []:
        raise TargetResponseError(
            "The target generated nothing: the list of choices is empty.",
            "The target's own log may say why.",
        )
    _malformed("there are no choices")


def _answer(body: object, choice: JsonObject, text: str, tokens: Tokens | None) -> Answer:
    usage = body.get("usage") if isinstance(body, dict) else None
    counts = usage if isinstance(usage, dict) else {}
    finish = choice.get("finish_reason")
    return Answer(
        text=text,
        tokens=tokens,
        finish_reason=finish if isinstance(finish, str) else None,
        prompt_tokens=_count(counts.get("prompt_tokens", counts.get("input_tokens"))),
        completion_tokens=_count(counts.get("completion_tokens", counts.get("output_tokens"))),
    )


def content_text(content: object) -> str | None:
    """Return the text of a message, which some servers send in parts; None where there is none.

    Raises:
        TargetResponseError: It is neither.
    """
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list):
        _malformed("the message's content is not text")
    thought = "think|thought|reason|summary"
    pieces = [piece if isinstance(piece, dict) else {"text": piece} for piece in content]
    texts = (
        piece.get("text") for piece in pieces if not re.search(thought, str(piece.get("type")))
    )
    return "".join(text for text in texts if isinstance(text, str))


def _count(value: object) -> int | None:
    # Anything but a count, such as a boolean, is unknown; then the worst case is charged.
    digits = str(value).removesuffix(".0")
    return int(digits) if re.fullmatch("[0-9]{1,9}", digits) else None


def _chat_tokens(entries: Sequence[object]) -> Tokens:
    if not all(isinstance(e, dict) and isinstance(e.get("token"), str) for e in entries):
        _malformed("an entry of logprobs has no token")
    rows = [entry for entry in entries if isinstance(entry, dict)]
    return tuple(
        TokenLogprob(token, _logprob(row.get("logprob")), _alternatives(row.get("top_logprobs")))
        for token, row in zip(_spell(rows), rows, strict=True)
    )


def _spell(rows: Sequence[JsonObject]) -> list[str]:
    """Text of each token, so that they join to the answer.

    A character split between tokens shows as replacement characters; their bytes, read on
    from token to token, give it to the token that completes it.
    """
    tokens: list[str] = [row["token"] for row in rows]
    data = [_bytes(row.get("bytes")) for row in rows]
    at = 0
    while at < len(tokens):
        end = at
        decoder = codecs.getincrementaldecoder("utf-8")("strict")
        spelled: list[str] = []
        # One run: from a broken token to the one that completes its last character.
        while end < len(tokens) and (_REPLACEMENT in tokens[end] or decoder.getstate()[0]):
            piece = data[end]
            try:
                spelled.append(decoder.decode(piece) if piece is not None else "")
            except UnicodeDecodeError:
                piece = None
            if piece is None:
                spelled = []
                break
            end += 1
        if spelled and not decoder.getstate()[0]:
            tokens[at:end] = spelled
        at = max(at + 1, end)
    return tokens


def _bytes(value: object) -> bytes | None:
    if not isinstance(value, list):
        return None
    try:
        return bytes(value)
    except (ValueError, TypeError):
        return None


def _alternatives(entries: object) -> tuple[tuple[str, float], ...]:
    """Alternatives of one token, most probable first."""
    if not isinstance(entries, list):
        return ()
    rows = [e for e in entries if isinstance(e, dict) and isinstance(e.get("token"), str)]
    pairs = [(_alone(row), _logprob(row.get("logprob"))) for row in rows]
    return _ranked(pairs)


def _alone(row: JsonObject) -> str:
    """Text of one alternative; its bytes know more where its text is broken."""
    token: str = row["token"]
    data = _bytes(row.get("bytes")) if _REPLACEMENT in token else None
    if data is None:
        return token
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"{_REPLACEMENT}<{data.hex()}>"  # a part of a character, by its bytes


def token_bytes(text: str) -> bytes:
    """Return the bytes of an alternative, also of one that is a part of a character."""
    match = _PART.fullmatch(text)
    return bytes.fromhex(match[1]) if match else text.encode("utf-8", "surrogatepass")


_PART = re.compile(f"{_REPLACEMENT}<((?:[0-9a-f]{{2}})+)>")


def _ranked(pairs: Sequence[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    finite = [pair for pair in pairs if not math.isnan(pair[1])]
    return tuple(sorted(finite, key=lambda pair: -pair[1]))


def _logprob(value: object) -> float:
    """A log-probability; NaN where the target gave none, or what cannot be one."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return math.nan
    try:
        number = float(value)
    except OverflowError:  # JSON knows integers of any length
        return math.nan
    return min(number, 0.0) if number <= _ROUNDING else math.nan


def _completion_tokens(logprobs: JsonObject) -> Tokens | None:
    tokens, values = logprobs.get("tokens"), logprobs.get("token_logprobs")
    if tokens is None or values is None:
        return None
    if not isinstance(tokens, list) or not isinstance(values, list) or len(tokens) != len(values):
        _malformed("the lists in logprobs differ in length")
    tops = logprobs.get("top_logprobs")
    if not isinstance(tops, list) or len(tops) != len(tokens):
        tops = [None] * len(tokens)
    return tuple(
        TokenLogprob(str(token), _logprob(value), _listed(top))
        for token, value, top in zip(tokens, values, tops, strict=True)
    )


def _listed(top: object) -> tuple[tuple[str, float], ...]:
    if not isinstance(top, dict):
        return ()
    return _ranked([(str(token), _logprob(value)) for token, value in top.items()])


# Reads the body of a reply: JSON, or a stream's events; and errors that came as a success.


STREAM = "text/event-stream"

STREAM_END = re.compile(rb"(?i)(?:^|[\r\n])data:[ \t]*\"?\[DONE\]")
"""The last event of the OpenAI protocol; JSON has no line breaks within its strings."""

_FIELD = re.compile(r"\s*(?:data|event|id|retry)?:")  # a line of server-sent events
# Separates JSON values (RFC 7464 begins each with a sign), or ends a stream.
_BETWEEN = re.compile(r'[\s\x1e]*(?:"?(?P<end>\[done\])"?\s*)?', re.IGNORECASE)

# Fields by which a stream says whether it ended, names of its last event, and ends that break off.
_ENDS = frozenset(
    "finish_reason finishReason stop_reason done done_reason is_end is_final is_finished"
    " finished".split()
)
_LAST = re.compile(r"(?:^|[._:/-])(?:done|end|ended|completed?|finish(?:ed)?|stop(?:ped)?)$", re.I)
_FAILED = re.compile("error|failed|failure|cancell?ed|aborted", re.IGNORECASE)
_BROKEN = re.compile(r"error|abort|cancel|fail|timeout|interrupt|insufficient", re.IGNORECASE)

# How errors that come with status 200 are named, and the status that says the same.
_ERROR_STATUS = {
    "rate_limit": 429, "too_many": 429, "resource_exhausted": 429, "quota": 429,
    "overloaded": 503, "unavailable": 503, "timeout": 503,
    "server_error": 500, "internal": 500, "api_error": 500,
    "invalid_request": 400, "authentication": 401, "permission": 403,
}  # fmt: skip


class Events(list[Any]):
    """The events of a stream: JSON where it is JSON, else text.

    Attributes:
        ended: Whether an event was the last one by its name.
    """

    ended = False

    def is_whole(self, *, says_so: bool) -> bool:
        """Whether the stream came to its end.

        Args:
            says_so: Whether its protocol lets every stream name its end. Else only one whose
                events have a field for it, such as ``done``, must have it set.
        """
        marks = [mark for event in self for mark in _marks(event)]
        return self.ended or any(marks) or not (marks or says_so)


def _marks(value: object) -> Iterator[bool]:
    """Whether the stream has ended, for each field of an event that says so."""
    if isinstance(value, list):
        for entry in value:
            yield from _marks(entry)
    for name, entry in value.items() if isinstance(value, dict) else ():
        if name in _ENDS and entry != "null":
            yield bool(entry)
        elif name in ("type", "event") and _LAST.search(str(entry)):
            yield True
        else:
            yield from _marks(entry)


def read_body(content_type: str, body: bytes) -> Any:
    """Return the JSON of a reply, or the events of a stream, whatever it calls itself.

    An error in the reply, an event or a choice is returned as an object with the field ``error``.

    Args:
        content_type: The header, with its ``charset`` where it has one.
        body: The whole body.

    Raises:
        ValueError: It is neither; a UnicodeDecodeError where its characters cannot be read.
        RecursionError: It is nested too deeply.
    """
    kind, text = content_type.lower(), _text(content_type, body)
    if any(name in kind for name in ("ndjson", "jsonl", "stream+json", "json-seq")):
        content: Any = _lines(text)
    else:
        try:
            content = json.loads(text)
        except ValueError:
            content = _events(text) if STREAM in kind or _FIELD.match(text) else _lines(text)
    # Further choices are answers of their own.
    replies = content if isinstance(content, Events) else [content]
    least = min((_index(choice) for reply in replies for choice in _choices(reply)), default=0)
    for reply in replies:
        if choices := _choices(reply):
            reply["choices"] = [choice for choice in choices if _index(choice) == least]
    return {"error": error} if (error := error_in(content)) else content


def _choices(reply: object) -> list[JsonObject]:
    choices = reply.get("choices") if isinstance(reply, dict) else None
    return [c for c in choices if isinstance(c, dict)] if isinstance(choices, list) else []


def _index(choice: JsonObject) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def _text(content_type: str, body: bytes) -> str:
    """Decode a body: JSON is UTF-8 whatever its header says, unless it cannot be read so."""
    try:
        return body.decode(json.detect_encoding(body))
    except UnicodeDecodeError:
        reply = httpx2.Response(200, headers={"content-type": content_type})
        return body.decode(reply.encoding or "utf-8")


def _lines(text: str) -> Events:
    """Read JSON values one after the other, as a rule a line each."""
    events, decoder, at = Events(), json.JSONDecoder(), 0
    while True:
        between: Any = _BETWEEN.match(text, at)
        events.ended |= between["end"] is not None
        if (at := between.end()) == len(text) and (events or events.ended):
            return events
        event, at = decoder.raw_decode(text, at)
        events.append(event)


def _events(text: str) -> Events:
    reply = httpx2.Response(
        200,
        headers={"content-type": STREAM},
        content=f"{text}\n\n".encode(),  # some leave out the end of the last event
        request=httpx2.Request("GET", "http://localhost"),
    )
    events = Events()
    for event in httpx2.EventSource(reply, max_event_size=None):
        events.ended |= bool(_LAST.search(event.event))
        if not event.data.strip():
            continue
        # Some leave out the empty lines between events.
        contents = Events([event.data])
        with suppress(ValueError, RecursionError):
            contents = _lines(event.data)
        events.ended |= contents.ended
        for content in contents:
            named = event.event == "error" and error_in(content) is None
            events.append({"error": content} if named else content)
    return events


def error_in(content: object) -> Any:
    """Return the error that a reply is, or that an event or choice of it names; None without."""
    if isinstance(content, list):
        return next(filter(None, map(error_in, content)), None)
    if not isinstance(content, dict):
        return None
    errors = content.get("errors")
    if error := content.get("error") or (isinstance(errors, list) and errors and errors[0]):
        return error
    named = (str(content.get(name)) for name in ("type", "event", "object", "status"))
    if any(map(_FAILED.fullmatch, named)):
        return content
    ended = content.get("finish_reason")
    if isinstance(ended, str) and _BROKEN.search(ended):
        return {"code": 502, "message": f"the answer broke off ({ended})"}
    return error_in([content.get(name) for name in ("choices", "message", "delta")])


def error_status(content: object) -> int | None:
    """Return the status that an error within a reply means.

    Returns:
        None where there is no error, or one of which it is not known whether it passes.
    """
    error = content.get("error") if isinstance(content, dict) else None
    if not error:
        return None
    named = (
        [error.get(name) for name in ("code", "status", "type", "message")]
        if isinstance(error, dict)
        else [error]
    )
    for value in named:
        if isinstance(value, int | str) and str(value).isdecimal() and 400 <= int(value) < 600:
            return int(value)
    words = " ".join(value for value in named if isinstance(value, str)).lower().replace(" ", "_")
    return next((status for name, status in _ERROR_STATUS.items() if name in words), None)
