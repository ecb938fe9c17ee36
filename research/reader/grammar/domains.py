"""Synthetic documents: near-duplicates filled from patterns, word lists and inventions."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from research.reader.grammar.words import PHRASES, Values

# A grammar is sentence patterns in two halves, and the words that open each half.


@dataclass(frozen=True)
class Domain:
    """Patterns with ``{slot}`` places; ``first`` sentences come before ``second`` ones."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    openings: tuple[str, ...] = ("",)
    middles: tuple[str, ...] = ("",)


# Sentence patterns of the record-like domains: clinic, personnel, support, contract, biography.

RECORDS = {
    "clinic": Domain(
        openings=("Patient: ",),
        middles=("Doctor: ",),
        first=(
            "Hello doctor, I am {first}, a {age} year old {job} from {place}.",
            "Hi, my name is {person} and I am {age}.",
            "Doctor, my {relative} {first} is {age} years old.",
            "I have had {symptom} in my {part} for {small} {period}.",
            "Since {date} I feel {symptom} and {symptom} near the {part}.",
            "It started after I ate {food} and it gets worse at {time}.",
            "I was given {drug} {dose} {frequency} by {doctor} but it did not help.",
            "My {test} on {date} showed a value of {lab}.",
            "My blood pressure was {bp} and my weight is {number} kg.",
            "I also take {drug} for {condition}.",
            "Three of my relatives had {condition}.",
            "There is no fever, only {symptom}.",
            "Could this be {condition}?",
            "Should I stop taking {drug}?",
            "Is it safe to eat {food}?",
            "What should I do about the {part}?",
            "Do I need a {test}?",
            "My {relative} {first} told me to try {drug}.",
            "I smoke {small} cigarettes a day and sleep {small} hours.",
            "The clinic in {place} gave me file number {code}.",
        ),
        second=(
            "Hello {first}, thank you for your question.",
            "Thanks for writing to us.",
            "Hi, I have read your message carefully.",
            "From what you describe this looks like {condition}.",
            "The most likely cause is {condition}, less likely {condition}.",
            "I suggest {drug} {dose} {frequency} for {small} {period}.",
            "Please stop {drug} and start {drug} {dose}.",
            "You need a {test} and then a {test} within {small} days.",
            "A level of {lab} is a little high.",
            "Avoid {food} and {food} until the {symptom} is gone.",
            "If you notice {symptom} go to the emergency room at once.",
            "Rest the {part} and apply ice for {number} minutes {frequency}.",
            "You may see {doctor} at {org} on {date}.",
            "The {symptom} should settle in {small} {period}.",
            "Call me on {phone} if the {part} becomes worse.",
            "Drink {small} glasses of water each day.",
            "I hope this helps, {doctor}.",
            "Wish you good health.",
            "Follow up with {doctor} after {small} {period}.",
        ),
    ),
    "personnel": Domain(
        openings=("Record. ",),
        middles=("",),
        first=(
            "{person} joined the {department} team of {org} on {date}.",
            "Employee {code}, {person}, lives at {street} in {place}.",
            "{first} earns {money} a year and reports to {person}.",
            "Before this {first} worked as a {job} at {org} for {small} {period}.",
            "{first} speaks to clients about {skill} and {skill}.",
            "The manager of {department} is {person}.",
        ),
        second=(
            "In the review of {date} the score was {lab} out of 20.",
            "A bonus of {money} was paid on {date}.",
            "{first} asked for {small} {period} of leave because of {condition}.",
            "The emergency contact is the {relative}, {person}, phone {phone}.",
            "Training in {skill} is booked with {org}.",
            "The work email is {email}.",
            "A warning was issued on {date} for being late {small} times.",
            "The desk moved from {place} to {place}.",
            "Next step: move to {department} under {person}.",
        ),
    ),
    "support": Domain(
        openings=("Customer: ",),
        middles=("Agent: ",),
        first=(
            "Ticket {code}: my {product} {fault}.",
            "I bought the {product} from {org} on {date} for {money}.",
            "My order number is {code} and my name is {person}.",
            "The {product} model {code} {fault} after {small} {period}.",
            "You can reach me at {email} or {phone}.",
            "I live at {street}, {place}.",
        ),
        second=(
            "Dear {first}, we are sorry that the {product} {fault}.",
            "Hold the button for {small} seconds and wait for code {code}.",
            "We will refund {money} by {date}.",
            "A technician named {first} will visit on {date} at {time}.",
            "Please send the {product} to {street}, {place}.",
            "Your case was moved to {department} with number {code}.",
            "The warranty ended on {date}.",
            "Update to version {lab} and try again.",
            "Regards, {person} from {org}.",
        ),
    ),
    "contract": Domain(
        openings=("",),
        middles=("",),
        first=(
            "This agreement is made on {date} between {org} and {org}.",
            "The tenant {person} rents {street} in {place}.",
            "{org} shall pay {money} on or before {date}.",
            "Either party may {clause} with {small} {period} notice.",
            "The loan of {money} carries interest of {lab} percent.",
            "{person} acts as witness for {org}.",
        ),
        second=(
            "Failure to pay allows {org} to {clause}.",
            "Notices go to {email} or {street}.",
            "The deposit of {money} is held by {person}.",
            "Clause {small} applies only in {place}.",
            "{org} may {clause} and {clause} after {date}.",
            "The reference number is {code}.",
            "Disputes are heard in {place} before {person}.",
            "The insurer is {org}, policy {code}.",
        ),
    ),
    "biography": Domain(
        openings=("",),
        middles=("",),
        first=(
            "{person} was born on {date} in {place}.",
            "The {job} {person} grew up near {sight} in {place}.",
            "{first} studied {skill} in {place} and met {person} there.",
            "{last} wrote about {dish} and {sight}.",
            "For {small} {period} {last} worked for {org}.",
        ),
        second=(
            "In {date} {first} married {person}, a {job} from {place}.",
            "Together they opened a {lodging} at {street}.",
            "{last} sold it for {money} to {org}.",
            "Later {first} suffered from {condition} and took {drug}.",
            "The last letter to {person} is dated {date}.",
            "{first} owned {number} books and a {product}.",
            "A {adjective} statue stands in {place}.",
            "The archive number is {code}.",
        ),
    ),
}


# Sentence patterns of the prose-like domains: chat, news, encyclopedia, meeting, review, story.

PROSE = {
    "chat": Domain(
        openings=("Patient: ", "Patient: ", "", "Q. "),
        middles=("Doctor: ", "Doctor: ", "Answer: ", ""),
        first=(
            "Hi doctor I am a {age} year old {job} and I am having {symptom} in my {part} for the "
            "last {small} {period}.",
            "My {relative} is {age} years and she has {quality} {symptom} since {small} {period}.",
            "I went to a {specialist} and he told me to do a {test} but I am {feeling} about it.",
            "The report says {lab} and the doctor said it is {condition}, is that true?",
            "I am taking {drug} {dose} {frequency} and also {drug} for my {condition}.",
            "Now I have {quality} pain in the {part} and I do not know what to do.",
            "It comes and goes, mostly {frequency} or after {food}.",
            "What could be causing this and should I see a {specialist}?",
            "I was diagnosed with {condition} in {year} and had surgery on my {part}.",
            "Please help me I am very {feeling}.",
            "Can I take {drug} together with {drug}?",
            "My {relative} had the same problem with the {part} and it was {condition}.",
            "I noticed {symptom} on my {part} about {small} {period} ago, it is {colour} and it "
            "itches.",
            "I have no insurance so I can not go to {org} right now.",
            "I am {feeling} because the {symptom} does not go away even after {drug}.",
            "My weight is {number} and my height is {lab}, bp {bp}.",
            "Is it normal to feel {symptom} after a {test}?",
        ),
        second=(
            "Hello, I can understand your concern.",
            "Hi, thanks for writing in, I have gone through your query.",
            "In my opinion you should consult a {specialist} for a {test} and get it ruled out.",
            "This can be due to {condition} or {condition}, less often it is {condition}.",
            "You may need {drug} {dose} {frequency} for {small} {period} along with {drug}.",
            "Till then {advice} and {advice}.",
            "The {quality} {symptom} in the {part} is mostly caused by {condition}.",
            "If the {test} is normal then nothing to worry about.",
            "It will take {small} {period} for the {part} to heal completely.",
            "Do not take {drug} without asking a {specialist} first, it can cause {symptom}.",
            "A {test} will show whether the {part} is affected.",
            "I would also advise you to {advice}.",
            "In case of {symptom} or {symptom} please go to the emergency room.",
            "Since your value is {lab} the dose of {drug} has to be raised to {dose}.",
            "Hope I have answered your query, let me know if I can assist you further.",
            "Take care and get well soon.",
        ),
    ),
    "news": Domain(
        openings=("", "{place}: ", "{person} and the Future of {topic} "),
        first=(
            "In the {adjective} town of {place}, a {trait} {job} named {person} is changing the "
            "way people think about {topic}.",
            "{org} announced on {date} that it will {verb} its {thing} in {place} at a cost of "
            "{money}.",
            "When {person} first arrived in {place} in {year}, few people had heard of {topic}.",
            "The {venue} in {place} was full on {date} as residents gathered to hear about "
            "{topic}.",
            "Spending on {topic} {trend} by {percent} last year, according to a report by {org}.",
            "For {first}, the idea began with a broken {product} and a conversation with a "
            "{relative}.",
            "A {adjective} {thing} on {street} has become the unlikely centre of {topic} in "
            "{place}.",
            "{person}, a former {job} from {place}, never expected to {verb} a {thing}.",
        ),
        second=(
            '"We were {feeling}, but we knew it was {opinion}," {last} says.',
            '"People told me it was {opinion}," recalls {first}, who is now {age}.',
            "{link}, the number of visitors {trend} to {big} within {small} {period}.",
            "{link}, critics such as {person} of {org} call the plan {opinion}.",
            "The project employs {number} people, among them a {job} and a {job} from {place}.",
            "Colleagues describe {last} as {trait} and {trait}, with a love of {dish} and {topic}.",
            "A grant of {money} from {org} allowed the team to {verb} the {thing}.",
            "{last} starts each day at {time}, walks past {sight}, and calls {first} about the "
            "{thing}.",
            "The {venue} will host a meeting on {topic} on {date}.",
            '"My {relative} taught me {skill} when I was {age}," {first} explains.',
            "{link}, {org} hopes to {verb} a second {thing} in {place} by {year}.",
            "Not everyone is {feeling}: {person}, who lives on {street}, fears the noise.",
            "What began as a {thing} for {small} families now serves {big} customers across "
            "{place}.",
            "The lesson, {last} insists, is that {topic} and {topic} belong together.",
            "Analysts at {org} expect revenue of {money} in {year}, {percent} more than before.",
        ),
    ),
    "encyclopedia": Domain(
        first=(
            "The {colour} {creature} ( {word} {word} ) is a species of {creature} found in "
            "{place} and {place}.",
            "{word} is a {year} {genre} written by {person} and produced by {org}.",
            "SMS {last} was a {vessel} of the navy of {place}, built by {org} in {year}.",
            "{person} ( born {date} ) is a {job} from {place} best known for the {genre} {word}.",
            "{place} is a town in the {word} district with a population of {big} in {year}.",
            "The Battle of {place} was fought on {date} between the forces of {last} and {last}.",
        ),
        second=(
            "It was described by {person} in {year} and is closely related to the {creature} of "
            "{place}.",
            "The {creature} grows to a length of {number} cm and lives in {habitat}.",
            "Its back is {colour} while the underside is {colour} with {small} spots.",
            "It reached number {small} on the chart in {place} and sold {big} copies.",
            "The {vessel} displaced {big} tons and carried a crew of {number} under captain "
            "{last}.",
            "{link}, {last} moved to {place} and worked as a {job} until {year}.",
            "The {genre} received mixed reviews : {person} called it {opinion} .",
            "Construction of the {thing} began in {year} and ended {small} {period} later at a "
            "cost of {money}.",
            "The population {trend} from {big} to {big} between {year} and {year}.",
            "{person} of the {venue} found that the {creature} feeds on {food} and small insects.",
            "In {year} the town was hit by a flood that destroyed the {sight} and {number} houses.",
            "{link}, the {vessel} was sold to {org} and scrapped in {place}.",
            "The main sights are {sight} and {sight}, built under {person}.",
            "The name comes from the word {word}, which means {colour} {creature}.",
            "During the season {last} scored {number} points and {number} goals for {place}.",
            "A revised edition with music by {person} appeared on {date}.",
        ),
    ),
    "meeting": Domain(
        openings=("Minutes of {date}. ", ""),
        first=(
            "{first}: Okay, so today we talk about the {thing} and the {product}.",
            "{first}: I think we should {verb} the {thing} before {date}.",
            "{first}: The budget for {department} is {money}, that is {percent} more.",
            "{last}: Did anyone speak with {org} about the {product}?",
        ),
        second=(
            "{first}: Yeah, but the {product} {fault}, so we can not show it in {place}.",
            "{first}: I was a bit {feeling} when {person} said it was {opinion}.",
            "{last}: Let us ask {department} to {verb} it and report at {time}.",
            "{first}: Um, the {colour} one is {adjective}, I prefer the {colour} one.",
            "{last}: We agreed on {number} units at {money} each.",
            "{first}: {link}, the users want {skill} to be part of it.",
            "{last}: So {first} writes the minutes and {first} calls {phone}.",
            "{first}: Right, the next meeting is on {date} in the {venue}.",
        ),
    ),
    "story": Domain(
        first=(
            "Once there lived a {trait} {job} named {first} near {sight} of {place}.",
            "Long ago the king of {place} had {small} daughters, and the youngest was called "
            "{first}.",
            "One night a {colour} {creature} came to the door of the {job} and asked for {dish}.",
        ),
        second=(
            '"If you give me your {thing}," said the {creature}, "I will make you the richest '
            '{job} in {place}."',
            "But {first} was {feeling} and would not listen to the {relative}.",
            "So they walked for {small} days through the {habitat} until they saw {sight}.",
            "There sat an old {job} with a {colour} coat, counting {number} pieces of silver.",
            "{link}, the {creature} turned into a {trait} prince and thanked {first}.",
            "He ate the {dish}, lay down beside the {product}, and slept until {time}.",
            '"Who has taken my {thing}?" cried the {job}, and everyone was {feeling}.',
            "From that day the {creature} lived in the {habitat} and was never seen in {place} "
            "again.",
            "She put the {word} into her pocket and told nobody but her {relative}.",
        ),
    ),
}


DOMAINS: dict[str, Domain] = {**RECORDS, **PROSE}
_SLOT = re.compile(r"\{(\w+)\}")
_Plan = tuple[str, str, list[str], list[str]]


def _fill(pattern: str, values: Values, fixed: dict[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        slot = match.group(1)
        if slot in PHRASES:
            return values.rng.choice(PHRASES[slot])
        if slot in fixed and values.rng.random() < 0.6:
            return fixed[slot]
        return values.makers[slot]()

    return _SLOT.sub(value, pattern)


def _plan(domain: Domain, rng: random.Random, words: int) -> _Plan:
    """Choose sentence patterns for a document of about ``words`` words (13 to a pattern)."""
    sentences = max(2, round(words / 13))
    opening_count = max(1, min(sentences - 1, round(sentences * rng.uniform(0.2, 0.6))))
    first = [rng.choice(domain.first) for _ in range(opening_count)]
    second = [rng.choice(domain.second) for _ in range(sentences - opening_count)]
    if opening_count <= len(domain.first):
        first = rng.sample(domain.first, opening_count)
    if sentences - opening_count <= len(domain.second):
        second = rng.sample(domain.second, sentences - opening_count)
    return rng.choice(domain.openings), rng.choice(domain.middles), first, second


def _realise(plan: _Plan, rng: random.Random) -> list[str]:
    values = Values(rng)
    fixed = {"first": values.first(), "last": values.last()}
    opening, middle, first, second = plan
    pieces = [opening, " ".join(first), " ", middle, " ".join(second)]
    return "".join(_fill(piece, values, fixed) for piece in pieces).split()


def cluster(name: str, rng: random.Random, count: int, words: int) -> list[list[str]]:
    """``count`` near-duplicate documents of about ``words`` words each, as word lists.

    They share most patterns and differ in their values; 60% also swap some patterns, so that a
    distractor can be either a sibling or a cousin of the target.
    """
    domain = DOMAINS[name]
    shared = _plan(domain, rng, words)
    documents = []
    for _ in range(count):
        opening, middle, first, second = shared[0], shared[1], list(shared[2]), list(shared[3])
        if rng.random() < 0.6:
            for patterns, choices in ((first, domain.first), (second, domain.second)):
                for index in range(len(patterns)):
                    if rng.random() < 0.35:
                        patterns[index] = rng.choice(choices)
        documents.append(_realise((opening, middle, first, second), rng))
    return documents
