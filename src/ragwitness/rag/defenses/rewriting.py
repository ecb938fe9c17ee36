"""The user's query in other words, before it retrieves."""

from __future__ import annotations

import re
from functools import lru_cache

from ragwitness.core.types import Message, Role
from ragwitness.models.base import ChatPrompt, LanguageModel
from ragwitness.rag.defenses.base import Defense
from ragwitness.rag.pipeline import QueryTooLongError
from ragwitness.text.words import STOP_WORDS

# Words and what the rule-based rewrite puts in their place: a table of our own.

FILLERS = frozenset(
    """actually also basically certainly definitely honestly just literally obviously please quite
    rather really simply so-called totally truly very""".split()
)
"""Words that a sentence can do without."""

# One row: what is replaced = what replaces it. Keys never repeat; nothing is replaced twice.
_TABLE = """
a lot of = many | lots of = many | as well as = and | because of = due to | in order to = to
as soon as = once | at the moment = now | each other = one another | such as = like
a few = several | a couple of = some | instead of = in place of | next to = beside | because = as
but = yet | perhaps = maybe | maybe = perhaps | however = still | although = though
though = although | until = till | whether = if | upon = on | within = inside | often = frequently
always = at all times | never = at no time | sometimes = at times | usually = normally
again = once more | now = at present | soon = shortly | almost = nearly | today = this day
currently = at present | recently = lately | lately = recently | quickly = rapidly
slowly = gradually | suddenly = abruptly | together = jointly | begin = start | began = started
start = commence | started = commenced | starts = commences | stop = cease | stopped = ceased
stops = ceases | give = provide | gives = provides | gave = provided | help = assist
helps = assists | helped = assisted | want = wish | wants = wishes | wanted = wished
try = attempt | tries = attempts | tried = attempted | show = display | shows = displays
showed = displayed | ask = inquire | asked = inquired | say = state | says = states
said = stated | think = believe | thinks = believes | thought = believed | find = discover
finds = discovers | found = discovered | buy = purchase | buys = purchases | bought = purchased
live = reside | lives = resides | lived = resided | happen = occur | happens = occurs
happened = occurred | suggest = recommend | suggests = recommends | suggested = recommended
fix = repair | fixed = repaired | choose = select
chose = selected | send = forward | sent = forwarded | end = finish | ends = finishes
ended = finished | big = large | large = big | small = little | little = small | quick = fast
fast = quick | good = fine | bad = poor | worse = poorer | hard = difficult | difficult = hard
easy = simple | important = significant | severe = serious | serious = severe | strange = odd
odd = strange | happy = glad | sad = unhappy | angry = annoyed | afraid = scared
worried = concerned | concerned = worried | sick = ill | ill = sick | tired = weary
sore = painful | swollen = puffy | whole = entire | many = numerous | several = a number of
enough = sufficient | correct = right | wrong = incorrect | main = chief | possible = feasible
normal = usual | common = widespread | different = distinct | pain = ache | pains = aches
ache = pain | doctor = physician | doctors = physicians | physician = doctor
medicine = medication | medicines = medications | medication = medicine | medications = medicines
drug = remedy | drugs = remedies | illness = disease | disease = illness | symptom = complaint
symptoms = complaints | stomach = belly | belly = stomach | test = examination
tests = examinations | treatment = therapy | therapy = treatment | child = kid | children = kids
kids = children | baby = infant | mother = mom | mom = mother | father = dad | dad = father
house = home | home = house | job = work | money = funds | car = vehicle | cars = vehicles
trip = journey | journey = trip | city = town | town = city | problem = issue | problems = issues
issue = problem | issues = problems | question = query | answer = reply | answers = replies
idea = thought | reason = cause | cause = reason | result = outcome | results = outcomes
story = tale | king = monarch | forest = woods | road = path | boy = lad | people = persons
man = fellow | near = close to | under = beneath | above = over | during = in the course of
therefore = thus | thus = therefore | hence = therefore | so that = in order that
huge = enormous | tiny = minute | entire = whole | purchase = buy | assist = help | attempt = try
believe = think | received = got | infant = baby | hurts = aches | fever = high temperature
rash = skin eruption | itching = itchiness | vomiting = throwing up | tablet = pill
tablets = pills | pills = tablets | pill = tablet | surgery = operation | operation = surgery
injury = wound | high blood pressure = hypertension | hypertension = high blood pressure
holiday = vacation | vacation = holiday | beautiful = lovely | lovely = beautiful
castle = palace | palace = castle | ship = boat | boat = ship | stone = rock | rock = stone
street = road | garden = yard | wealthy = rich | rich = wealthy | clever = smart | smart = clever
brave = courageous | woman = lady | girl = lass
"""

_CONTRACTIONS = """
i'm = I am | i've = I have | i'll = I will | i'd = I would | it's = it is | that's = that is
what's = what is | there's = there is | don't = do not | doesn't = does not | didn't = did not
can't = cannot | won't = will not | isn't = is not | aren't = are not | wasn't = was not
weren't = were not | couldn't = could not | shouldn't = should not | wouldn't = would not
haven't = have not | hasn't = has not | you're = you are | they're = they are | we're = we are
"""


def _read(table: str) -> dict[str, str]:
    pairs = (pair.split("=") for pair in table.replace("\n", "|").split("|") if pair.strip())
    return {old.strip(): new.strip() for old, new in pairs}


SUBSTITUTES = _read(_TABLE) | _read(_CONTRACTIONS)
"""Word or phrase in lower case -> its substitute."""


# A rewrite by rules, where no language model is at hand that can paraphrase.
#
# It is a stand-in: it changes the words and the order of clauses as a paraphrase does, but it
# knows no meaning, and a good model changes more. Text in other languages than English comes
# back as it was, and so do names, numbers and anything in brackets.

RULES_VERSION = 1
"""Changes whenever a text may be rewritten differently."""

_OPENERS = "because|although|though|unless|whenever|while|when|if"
_SENTENCE_END = re.compile(r"((?<=[.!?])\s+|\n+)")
_LEADING = re.compile(rf"({_OPENERS})\s+([^,]+),\s+([^,]+)", re.IGNORECASE)
_MEDIAL = re.compile(rf"([^,]+?),?\s+({_OPENERS})\s+([^,]+)")
_ASKS_WHETHER = re.compile(r"\b(know|knows|wonder|wondering|ask|asked|see|sure|tell|as)$", re.I)
_FEWEST_WORDS = 2

_EDGE = r"(?<![\w@./'\-\[<])"
_NO_MORE = r"(?![\w@'\-\]>]|[./:]\w)"
_PHRASES = "|".join(
    re.escape(phrase).replace("'", "['\u2019]").replace(r"\ ", r"\s+")
    for phrase in sorted(SUBSTITUTES, key=len, reverse=True)
)
_SUBSTITUTE = re.compile(rf"{_EDGE}(?:(an?)\s+)?({_PHRASES}){_NO_MORE}", re.IGNORECASE)
_FILLER = re.compile(rf"{_EDGE}(?:{'|'.join(sorted(FILLERS))}){_NO_MORE}[ \t]+", re.IGNORECASE)
_FIRST_PERSON = re.compile("I['\u2019]")
_SOUNDS_LIKE_A_CONSONANT = ("uni", "use", "eu", "one")


def rule_rewrite(text: str) -> str:
    """Return a text of one or more sentences in other words."""
    pieces = _SENTENCE_END.split(text)
    # Sentences stand at even places, what separates them at odd ones.
    return "".join(piece if place % 2 else _sentence(piece) for place, piece in enumerate(pieces))


def _sentence(text: str) -> str:
    # 1. A subordinate clause changes places with its main clause.
    text = _swap_clauses(text)
    # 2. Words that a sentence can do without go.
    rest = _FILLER.sub("", text)
    text = _capital(rest) if text[:1].isupper() else rest
    # 3. Words and phrases are replaced, all in one pass: what came in is not replaced again.
    return _SUBSTITUTE.sub(_substitute, text)


def _swap_clauses(sentence: str) -> str:
    """Turn "If A, B." into "B if A." and "B because A." into "Because A, B."."""
    body = sentence.rstrip(".!?")
    end = sentence[len(body) :]
    leading = _LEADING.fullmatch(body)
    if leading:
        opener, side, main = leading.groups()
        if _long_enough(side, main):
            return f"{_capital(main)} {opener.lower()} {side}{end}"
        return sentence
    medial = _MEDIAL.fullmatch(body)
    if medial:
        main, opener, side = medial.groups()
        if _long_enough(side, main) and not _ASKS_WHETHER.search(main):
            return f"{_capital(opener)} {side}, {_small(main)}{end}"
    return sentence


def _long_enough(*clauses: str) -> bool:
    return all(len(clause.split()) >= _FEWEST_WORDS for clause in clauses)


def _substitute(match: re.Match[str]) -> str:
    article, old = match.groups()
    opens = not re.search(r"\w", match.string[: match.start(2)])
    if old[0].isupper() and old[1:].islower() and not opens and not _FIRST_PERSON.match(old):
        return match.group()  # a name
    new = SUBSTITUTES[" ".join(old.lower().replace("\u2019", "'").split())]
    if old.isupper() and len(old) > 1:
        new = new.upper()
    elif old[0].isupper():
        new = _capital(new)
    if not article:
        return new
    vowel = new[0].lower() in "aeiou" and not new.lower().startswith(_SOUNDS_LIKE_A_CONSONANT)
    return f"{article[0]}{'n' if vowel else ''} {new}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _small(text: str) -> str:
    """Lower the first letter where the first word is not a name."""
    first = text.split()[0]
    lower = first.lower() in STOP_WORDS and first != "I"
    return text[:1].lower() + text[1:] if lower else text


_SLACK = 64  # tokens a conversation may need beside its texts
_QUOTES = {'"': '"', "\u201c": "\u201d", "'": "'"}
_REMEMBERED = 1 << 14


# The paraphrase defense of S-RAG, §5.3, after Li et al. 2024.
_PROMPT = "Please paraphrase the following sentence. Output only the paraphrase sentence.\n\n"


class QueryRewriting(Defense):
    """Rewrites what retrieves; the generator is still given what the user typed.

    S-RAG's paraphrasing "rewrites queries to mislead the retriever" (§5.3).

    Args:
        model: Greedy, so that the same query is rewritten the same way; None uses
            :func:`~ragwitness.rag.defenses.rewriting.rule_rewrite`, a stand-in.
    """

    def __init__(self, model: LanguageModel | None = None) -> None:
        self.model = model
        # Whoever evaluates retrieval asks for a query's rewrite again.
        self._by_model = lru_cache(maxsize=_REMEMBERED)(self._ask)

    @property
    def name(self) -> str:
        """By whom queries are rewritten, as stored answers know it."""
        rules = f"rules-{RULES_VERSION} clauses=True fillers=True"
        return f"paraphrase(retrieve by {rules if self.model is None else self.model.name})"

    def rewrite(self, query: str) -> str:
        """Return the query in other words; as it is where it is blank.

        Raises:
            QueryTooLongError: The model cannot read it and write as much again.
            ModelError: The model failed.
        """
        if not query.strip():
            return query
        return rule_rewrite(query) if self.model is None else self._by_model(query)

    def _ask(self, query: str) -> str:
        assert self.model is not None  # noqa: S101 - for the type checker
        text = f"{_PROMPT}{query}"
        asked, length = self.model.count_tokens(text), self.model.count_tokens(query)
        room = self.model.context_length - asked - _SLACK
        if room < length:
            raise QueryTooLongError(asked + length, self.model.context_length - _SLACK)
        prompt = ChatPrompt((Message(Role.USER, text),))
        made = self.model.generate([prompt], max_tokens=min(room, 2 * length + 32))[0]
        # A model that says nothing must not turn the query into one that finds nothing.
        return _unquoted(made.text.strip()) or query


def _unquoted(text: str) -> str:
    """Without the quotes that a model puts around its whole answer."""
    inner = text[1:-1]
    if len(text) > 2 and _QUOTES.get(text[0]) == text[-1] and not set(inner) & {text[0], text[-1]}:
        return inner.strip()
    return text
