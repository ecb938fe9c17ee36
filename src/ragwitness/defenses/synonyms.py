"""Words and what the rule-based rewrite puts in their place: a table of our own."""

from __future__ import annotations

__all__ = ["FILLERS", "SUBSTITUTES"]

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
