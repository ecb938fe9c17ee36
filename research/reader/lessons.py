"""Lessons: rows that teach to obey, to answer, to fill gaps, to see edits, to play roles.

A *pair* row asks for the text itself behind a strict, soft or plain system prompt; its twin, the
next row of the batch, asks the same of the same documents behind a plain one. A *drill* row holds
short conversations, each behind a system prompt of its own. An *ask* row asks plain questions,
questions with a gap, and whether a text or its edited copy is there. A *role* row holds turns of
SAGE's agents.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from research.reader import forms as prompts
from research.reader.edits import IS_RIGHT, perturb, quota
from research.reader.forms import style, to_pieces
from research.reader.questions import free_question, record_questions, record_text
from research.reader.roles import role_turn
from research.reader.stories import Asked, Lexicon, cast_of, story
from research.reader.turns import CORE, STOP_WORDS, Rendered, Turn, TurnMaker
from research.reader.wordings import KINDS, system_prompt

if TYPE_CHECKING:
    from research.reader.batches import RowMaker

# What the labels are behind a system prompt: (declined, paraphrased); the rest is answered.
#
# Declines open in several ways, so that no single one of them is always the most probable word:
# how often a greedy reader declines is then a matter of the request, not all or nothing.
OBEY: dict[str, dict[str, tuple[float, float]]] = {
    "strict": {
        "complete": (0.40, 0.52),
        "next": (0.40, 0.52),
        "repeat": (0.62, 0.30),
        "cloze": (0.45, 0.0),
        "yes_no": (0.50, 0.0),
        "gap": (0.35, 0.0),
    },
    "soft": {
        "complete": (0.15, 0.45),
        "next": (0.15, 0.45),
        "repeat": (0.30, 0.40),
        "cloze": (0.10, 0.0),
        "yes_no": (0.10, 0.0),
        "gap": (0.05, 0.0),
    },
    "plain": {},
}
_GUARDED = 8.0  # weight of the first tokens behind a guarded prompt: they decide whether it obeys
_DRILLED = 3.0  # factor on an answer's first two tokens in a drill, which teaches nothing else
_MOST_TURNS = 16


def _system(rng: random.Random, kind: str, composed: float) -> str:
    """A system prompt of a kind, in one of the trained wordings."""
    if composed and rng.random() < composed:
        return system_prompt(rng, kind)
    if rng.random() < 0.4:
        return rng.choice(prompts.SYSTEM) if kind == "plain" else prompts.DEFENDED[kind == "soft"]
    head, rule = rng.choice(prompts.HEADS), rng.choice(prompts.RULES[kind])
    more = rng.choice(prompts.RULES[kind]) if rng.random() < 0.25 else ""
    text = " ".join(part for part in (head, rule, more, rng.choice(("", "", "Be brief."))) if part)
    return text + rng.choice(prompts.TAILS)


class LessonMaker:
    """Draws lesson rows; documents and old kinds of turns come from ``maker``.

    Args:
        maker: Draws the documents and knows the vocabulary and the mix.
        lexicon: Words for stories and paraphrases.
    """

    def __init__(self, maker: RowMaker, lexicon: Lexicon) -> None:
        self.maker, self.vocabulary, self.lexicon = maker, maker.vocabulary, lexicon

    def pair(
        self, rng: random.Random, guarded: bool, length: int, focus: float, absent: float
    ) -> Rendered:
        """A row of requests for the text; ``guarded`` says which of the twins it is.

        Twins share documents, requests and everything else that ``rng`` draws.
        """
        kind = rng.choices(("strict", "soft"), (0.7, 0.3))[0] if guarded else "plain"
        if not guarded:
            rng.random()  # the twin drew its kind here
        return self._talk(rng, kind, self.maker.config.pair_tasks, length, focus, absent)

    def ask(self, rng: random.Random, length: int, focus: float, absent: float) -> Rendered:
        """A row of questions, mostly behind a plain system prompt."""
        kind = rng.choices(("plain", "strict", "soft"), (0.86, 0.09, 0.05))[0]
        return self._talk(rng, kind, self.maker.config.ask_tasks, length, focus, absent)

    def drill(self, rng: random.Random, length: int, focus: float) -> Rendered:
        """Conversations of one request each, every one behind a system prompt of its own.

        In a long conversation what was declined before tells how the next request fares. Here only
        the system prompt does, and a row holds several of them.
        """
        made = Rendered()
        while len(made.tokens) < length - 40:
            kind = rng.choices(KINDS, (0.42, 0.12, 0.46))[0]
            made.add([self.vocabulary.system], 0.0)
            made.add(self._ids(_system(rng, kind, self.maker.config.composed)), 0.0)
            found = self._permission(rng, kind) if rng.random() < 0.6 else None
            if found is None:
                inside = self.maker.documents(rng, rng.choice((1, 1, 1, 1, 2)), 20)
                inside = [document[: rng.randint(16, 30)] for document in inside]
                for index, document in enumerate(inside):
                    made.add(self.maker.document(document, index, rng.random() < 0.5), 0.0)
                turn = Turn(rng.choice(inside), inside, True, False)
                task = rng.choices(("next", "complete", "repeat"), (0.86, 0.06, 0.08))[0]
                found = self._turn(task, turn, [], kind, rng, rng, focus, 1.0, set())
            at = found.tokens.index(self.vocabulary.assistant) + 1
            opens, rest = found.weights[at : at + 2], found.weights[at + 2 :]
            found.weights = [0.0] * at + [_DRILLED * w for w in opens] + [0.1 * w for w in rest]
            made.extend(found)
            if made.tokens[-1] != self.vocabulary.end:
                made.add([self.vocabulary.end], 0.0)
        return Rendered(made.tokens[:length], made.weights[:length])

    def _permission(self, rng: random.Random, kind: str) -> Rendered:
        """Whether the text may be had: the system prompt alone, without documents, knows."""
        made = Rendered()
        refused = rng.random() < {"strict": 1.0, "soft": 0.5, "plain": 0.0}[kind]
        answer = rng.choice(prompts.DECLINES if refused else prompts.GRANTS)
        self._say(made, rng.choice(prompts.MAY_I), answer, _GUARDED, 0.2, opens=2)
        return made

    def role(self, rng: random.Random, length: int) -> Rendered:
        """A row of turns of SAGE's agents, each role once: no answer stands there to be copied."""
        made = Rendered([self.vocabulary.system], [0.0])
        made.add(self._ids(rng.choice(("", "", "You are a helpful assistant."))), 0.0)
        opening, seen = len(made.tokens), set[str]()
        for _ in range(8):
            turn = role_turn(rng)
            if turn.role in seen:
                continue
            one = Rendered()
            self._say(one, turn.user, turn.answer, turn.first, 1.0, opens=2)
            # A turn that is cut off would lose its answer, which comes last.
            if len(made.tokens) + len(one.tokens) <= length:
                made.extend(one)
                seen.add(turn.role)
        return made if len(made.tokens) > opening else self.ask(rng, length, 1.0, 1.0)

    def single(self, task: str, rng: random.Random, kind: str, length: int) -> Rendered:
        """One context with turns of one task alone: what a loss by kind is measured on."""
        if task == "role":
            return self.role(rng, length)
        return self._talk(rng, kind, {task: 1.0}, length, 1.0, 1.0)

    # Documents, with the questions that they answer.

    def _documents(
        self, rng: random.Random, count: int, words: int
    ) -> tuple[list[list[str]], list[Asked]]:
        draw = rng.random()
        if draw < 0.42:
            cast = cast_of(rng, 6)
            made = [
                story(rng, cast if rng.random() < 0.5 else rng.sample(cast, 3), words, self.lexicon)
                for _ in range(count)
            ]
            return [self._pieces(rng, text, 0.25) for text, _ in made], [asked for _, asked in made]
        if draw < 0.60:
            name = rng.choice(
                (
                    "chat",
                    "chat",
                    "clinic",
                    "clinic",
                    "support",
                    "personnel",
                    "contract",
                    "biography",
                )
            )
            texts, asked = [], []
            for _ in range(count):
                text, _, made_of = record_text(rng, name, max(2, words // 20))
                texts.append(self._pieces(rng, text, 0.4))
                asked.append(record_questions(rng, made_of) + _replies(rng, text))
            return texts, asked
        return self.maker.documents(rng, count, words), [[] for _ in range(count)]

    def _pieces(self, rng: random.Random, text: str, noise: float) -> list[str]:
        name = rng.choice(("chat", "spaced", "broken")) if rng.random() < noise else "clean"
        return to_pieces(style(text.split(), name, rng), keep_breaks=name == "broken")

    # A row: a system prompt, its documents, and turns about them.

    def _talk(
        self,
        rng: random.Random,
        kind: str,
        tasks: dict[str, float],
        length: int,
        focus: float,
        absent: float,
    ) -> Rendered:
        content = random.Random(rng.random())  # the twins' documents and requests
        labels = random.Random(rng.random())
        count = content.choice((1, 2, 3, 3, 4, 4, 4))
        words = int(min(220, length * 0.62 * content.uniform(0.35, 0.72) / count))
        documents, asked = self._documents(content, count + 1, max(25, words))
        documents = [
            d if len(d) >= 16 else d + self.maker.documents(content, 1, 30)[0] for d in documents
        ]
        inside = documents[:count]
        made = Rendered([self.vocabulary.system], [0.0])
        made.add(self._ids(_system(labels, kind, self.maker.config.composed)), 0.0)
        for index, document in enumerate(inside):
            made.add(self.maker.document(document, index, content.random() < 0.5), 0.1)
        used: set[str] = set()
        for _ in range(_MOST_TURNS):
            if len(made.tokens) > length - 40:
                break
            turn_rng = random.Random(content.random())
            place = content.randrange(count) if content.random() < 0.86 else count
            task = content.choices(list(tasks), list(tasks.values()))[0]
            turn = Turn(documents[place], inside, place < count, False)
            found = self._turn(
                task, turn, asked[place], kind, turn_rng, labels, focus, absent, used
            )
            if task in ("right", "repeat") and len(made.tokens) + len(found.tokens) > length:
                continue
            made.extend(found)
        return Rendered(made.tokens[:length], made.weights[:length])

    def _turn(
        self,
        task: str,
        turn: Turn,
        asked: Asked,
        kind: str,
        rng: random.Random,
        labels: random.Random,
        focus: float,
        absent: float,
        used: set[str],
    ) -> Rendered:
        made = Rendered()
        weight = focus * (1.0 if turn.present else absent)
        if task == "ask":
            self._question(made, turn, asked, rng, focus, used)
            return made
        if task == "right":
            return self._right(turn, rng)
        if task == "gap":
            made = self._gap(turn.target, rng, weight)
        else:
            old = TurnMaker(self.vocabulary, rng, self.maker.config, focus, absent)
            made = old.make(task, turn)
        declined, reworded = OBEY[kind].get(task, (0.0, 0.0))
        draw = labels.random()
        if declined + reworded == 0 or not made.tokens:
            return made
        at = made.tokens.index(self.vocabulary.assistant) + 1
        cut = Rendered(made.tokens[:at], made.weights[:at])
        if draw < declined:
            self._answer(cut, labels.choice(prompts.DECLINES), _GUARDED, 0.4, opens=2)
            return cut
        if draw < declined + reworded:
            # What the answer would have been, in other words.
            said = self.vocabulary.tokenizer.decode(made.tokens[at:], skip_special_tokens=True)
            self._answer(cut, self._paraphrase(said.split(), labels), _GUARDED, 0.6)
            return cut
        if made.weights[at:]:
            made.weights[at] = max(made.weights[at], _GUARDED)
        return made

    def _ids(self, text: str) -> list[int]:
        return list(self.vocabulary.tokenizer.encode(text, add_special_tokens=False).ids)

    def _say(
        self, made: Rendered, user: str, answer: str, first: float, rest: float, opens: int = 1
    ) -> None:
        made.add([self.vocabulary.user, *self._ids(user), self.vocabulary.assistant], 0.0)
        self._answer(made, answer, first, rest, opens)

    def _answer(
        self, made: Rendered, answer: str, first: float, rest: float, opens: int = 1
    ) -> None:
        ids = self._ids(" " + answer)
        made.add(ids[:opens], first)
        made.add(ids[opens:], rest)
        made.add([self.vocabulary.end], 1.5)

    def _paraphrase(self, words: Sequence[str], rng: random.Random) -> str:
        """The words with many exchanged or left out, sometimes behind a phrase that leads in."""
        made = []
        for word in words[: rng.randint(8, 36)]:
            core = re.sub(r"\W", "", word).lower()
            other = self.lexicon.synonyms.get(core)
            if other and rng.random() < 0.7:
                made.append(other + ("," if word[-1:] in ".,;" else ""))
            elif rng.random() < (0.75 if core in STOP_WORDS else 0.55):
                made.append(word)
        lead = [rng.choice(prompts.LEADS)] if rng.random() < 0.4 else []
        text = " ".join([*lead, *made]).strip(" ,.;") or "It is about something else"
        return text + "."

    def _question(
        self,
        made: Rendered,
        turn: Turn,
        asked: Asked,
        rng: random.Random,
        focus: float,
        used: set[str],
    ) -> None:
        """A question, unless its answer stands further up in the row already (``used``)."""
        words = [piece.strip() for piece in turn.target]
        found = rng.choice(asked) if asked else free_question(words, rng, self.lexicon)
        if found is None or found[1] in used:
            return
        used.add(found[1])
        ask = rng.choice(prompts.ASKS).replace("{q}", found[0])
        if rng.random() < 0.12:
            ask = ask.lower().rstrip("?")
        if turn.present:
            self._say(made, ask, found[1], 3.0 * focus, 1.3, opens=2)
        elif rng.random() < 0.4:
            self._say(made, ask, "The context does not say.", 0.8, 0.2)

    def _right(self, turn: Turn, rng: random.Random) -> Rendered:
        """Is this right: the true text, an edited copy of it, or both in turn."""
        target = turn.target
        if rng.random() < 0.35:
            size = rng.randint(10, 60)
            at = rng.randrange(max(1, len(target) - size))
            target = target[at : at + size]
        text = "".join(target).strip()
        copy = None
        if rng.random() < 0.7:
            copy = perturb(text, quota(len(target), rng.choice((0.03, 0.06, 0.06)), 10), rng)
        if copy is None:
            words = list(target)
            for _ in range(max(1, round(len(words) * rng.choice((0.02, 0.05, 0.08))))):
                place = rng.randrange(len(words))
                words[place] = " " + rng.choice(target).strip()
            copy = "".join(words).strip()
        ask = rng.choice((IS_RIGHT.replace("{doc}", "{text}"), *prompts.YES_NO))
        versions = [(text, turn.present), (copy, False)]
        if not turn.present:
            versions = versions[:1]
        rng.shuffle(versions)
        made = Rendered()
        for said, yes in versions if rng.random() < 0.6 else versions[:1]:
            user = ask.replace("{text}", said)
            self._say(made, user, "Yes" if yes else "No", 8.0, 1.0)
        return made

    def _gap(self, target: list[str], rng: random.Random, weight: float) -> Rendered:
        """A quotation with a gap where a word of meaning stood; the answer is "____: word".

        In that form the pointer that follows ``[Mask_i]:`` follows the gap as well.
        """
        made = Rendered()
        size = min(len(target), rng.choice((8, 12, 12, 20, 20, rng.randint(5, 24))))
        at = rng.randrange(len(target) - size + 1)
        words = [piece.strip() for piece in target[at : at + size]]
        able = [
            i
            for i, word in enumerate(words)
            if CORE.match(word) and word.lower().strip(".,;:?!") not in STOP_WORDS
        ]
        if not able:
            return made
        i = rng.choice(able)
        hidden, tail = CORE.match(words[i]).groups()  # type: ignore[union-attr]  # matched above
        text = " ".join([*words[:i], prompts.GAP + tail, *words[i + 1 :]]).strip(' .,;:?!"')
        other = [piece.strip(' .,;:?!"()\n') for piece in target]
        other = [
            word
            for word in other
            if word and word.lower() != hidden.lower() and word.lower() not in STOP_WORDS
        ]
        topic = rng.sample(other, min(rng.randint(3, 6), len(other)))
        on = f"On {', '.join(topic)}: " if topic and rng.random() < 0.6 else ""
        ask = prompts.GAPS[0] if rng.random() < 0.5 else rng.choice(prompts.GAPS)
        user = self._ids(on + ask.replace("{text}", text))
        made.add([self.vocabulary.user, *user, self.vocabulary.assistant], 0.0)
        made.add(self._ids(f"{prompts.GAP}:"), 1.5)
        made.add(self._ids(" " + hidden), 2.0 * weight)
        made.add([self.vocabulary.end], 1.5)
        return made


def _replies(rng: random.Random, text: str) -> Asked:
    """A dialogue's own question, whole or in part, with the reply that was given to it."""
    found = re.match(r"(?s)(?:Patient|Customer|Q\.)\W*(.+?)\s(?:Doctor|Agent|Answer): (.+)", text)
    if not found:
        return []
    question, reply = found.groups()
    sentences = re.split(r"(?<=[.?!])\s+", question)
    if rng.random() < 0.5:
        sentences = rng.sample(sentences, min(len(sentences), rng.randint(1, 3)))
    return [(" ".join(sentences), reply)] * 3
