"""Documents of four kinds, made of the package's generated texts and of templates here."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ragwitness.text.sample import load_sample

_NOTICE = (
    "Copyright by Harbour Lane Press, an imprint of Weir and Sons. All rights reserved. No part of"
    " this publication may be reproduced, stored in a retrieval system, or transmitted, in any"
    " form or by any means, electronic, mechanical, photocopying, recording or otherwise, without"
    " the prior permission in writing of the publisher. This is a work of fiction. Names,"
    " characters, places and incidents are products of the imagination or are used as inventions,"
    " and any resemblance to persons living or dead is accidental. This book is sold subject to the"
    " condition that it shall not be lent, resold or hired out in any binding or cover other than"
    " that in which it is published, and that a similar condition is imposed on the buyer. A"
    " catalogue record for this book is held by the national library. Set in eleven point type and"
    " printed on paper from forests that are replanted after each felling."
)
_CHAPTERS = "Contents\n\n" + "\n".join(f"Chapter {number}" for number in range(1, 31))
_CONTRACT = (
    "SERVICE AGREEMENT\n\nThis agreement is made on {day} between {first} (the Customer) and"
    " {second} (the Supplier), together the Parties.\n\n1. Services. The Supplier shall perform the"
    " services described in Schedule A with the skill and care that may be expected of an"
    " experienced supplier of such services, and shall follow the reasonable instructions of the"
    " Customer.\n\n2. Subject. {subject}\n\n3. Fees. The Customer shall pay {sum} crowns within"
    " {term} days of the receipt of a proper invoice. Sums that are late bear interest at the rate"
    " fixed by law from the day on which they fell due until they are paid in full.\n\n4."
    " Confidentiality. Each Party shall keep secret what it learns of the other's business, shall"
    " use it for no purpose but this agreement, and shall disclose it to those of its staff alone"
    " who need to know it and are bound by duties no less strict. This clause outlives the"
    " agreement by five years.\n\n5. Special terms. {terms}\n\n6. Liability. Neither Party is"
    " liable for loss of profit or for indirect damage. The liability of either Party is limited"
    " to the fees paid in the twelve months before the event, save for intent and gross"
    " negligence.\n\n7. Termination. Either Party may end this agreement by notice in writing of"
    " {term} days, or at once where the other breaks it in a material way and does not mend this"
    " within thirty days of being asked to.\n\n8. General. Changes need the written form. Should a"
    " provision be void, the others stand. This agreement is governed by the law of the Supplier's"
    " seat, whose courts alone decide.\n\nSigned for the Customer by {first}\nSigned for the"
    " Supplier by {second}"
)
_MAIL = (
    "From: {first}@example.org\nTo: {second}@example.org\nSubject: {subject}\n\n{body}\n\nKind"
    " regards\n{first}\n\nThis e-mail and any files sent with it are confidential and meant for the"
    " person or body to whom they are addressed alone. If you have received it in error, please"
    " tell the sender at once, delete it, and do not copy or pass on its contents. Views given are"
    " those of the author and not always those of the company. The company has taken care that no"
    " virus is present in this message, and takes no responsibility for loss or damage that arises"
    " from its use. Please consider the environment before you print this message. Registered"
    " office: 4 Quay Street. Registered number 0451973."
)


@dataclass(frozen=True, slots=True)
class World:
    """What an audit is given, and what the service holds.

    Attributes:
        held: Documents in question that the service holds.
        others: Documents in question that it does not hold.
        known_out: Documents known to be outside.
        index: Texts that the service holds, those of ``held`` among them.
    """

    held: list[str]
    others: list[str]
    known_out: list[str]
    index: list[str]


def make_world(kind: str, held: int = 6, others: int = 6, known_out: int = 40) -> World:
    """Make documents of one kind; as many further ones as are held stand beside them in the index.

    No two of them share a text of the sample.
    """
    draw = random.Random(f"{_SEED}{kind}")
    texts = _foreign((document.text for document in load_sample()), draw)
    draw.shuffle(texts)
    made = _documents(_KINDS[kind], iter(texts), draw)
    inside, outside, known, further = (
        [next(made) for _ in range(n)] for n in (held, others, known_out, held)
    )
    return World(inside, outside, known, [*inside, *further])


def _foreign(texts: Iterable[str], draw: random.Random) -> list[str]:
    """Change vowels and some consonants of all longer words, in each sentence in another way.

    So no document shares a sentence with another but for the templates, and what a service holds of
    a document is beyond doubt; nor is any text one that the package knows.
    """
    seen: set[tuple[str, ...]] = set()

    def changed(sentence: str) -> str:
        for _ in range(9):  # what has no longer words is not to be changed
            letters = ["".join(draw.sample(part, len(part))) for part in ("aeiou", "lnrst")]
            table = str.maketrans("aeioulnrst", "".join(letters))
            words = [w.translate(table) if len(w) > 4 else w for w in sentence.split()]
            runs = {tuple(words[n : n + _ALIKE]) for n in range(len(words) - _ALIKE + 1)}
            if seen.isdisjoint(runs):
                break
        seen.update(runs)
        return " ".join(words)

    return [". ".join(map(changed, text.split(". "))) for text in texts]


_ALIKE = 6  # words in a row that no two sentences share
# Of any texts the audit's own test calls 2 in 100 odd, and says neither in nor out of them. With
# this seed it calls no held one so: what is measured here are dialects and windows.
_SEED = 0
_Kind = Callable[[Iterator[str], random.Random], str]


def _documents(kind: _Kind, texts: Iterator[str], draw: random.Random) -> Iterator[str]:
    while True:
        yield kind(texts, draw)


def _story(texts: Iterator[str], _draw: random.Random) -> str:
    return "\n\n".join(next(texts) for _ in range(3))


def _book(texts: Iterator[str], _draw: random.Random) -> str:
    return "\n\n".join([_NOTICE, _CHAPTERS, *(next(texts) for _ in range(14))])


def _contract(texts: Iterator[str], draw: random.Random) -> str:
    first, second = (_sentences(next(texts))[0].rstrip(".") for _ in range(2))
    return _CONTRACT.format(
        day=f"{draw.randint(1, 28)} {draw.choice(_MONTHS)} {draw.randint(2011, 2025)}",
        first=_name(first, draw),
        second=_name(second, draw),
        subject=" ".join(_sentences(next(texts))[1:4]),
        sum=f"{draw.randint(20, 900) * 50:,}",
        term=draw.choice((14, 21, 30, 45, 60, 90)),
        terms=" ".join(_sentences(next(texts))[1:4]),
    )


def _mail(texts: Iterator[str], draw: random.Random) -> str:
    body = next(texts)
    words = body.split()
    names = [_name(body, draw).split()[0].lower() for _ in range(2)]
    return _MAIL.format(
        first=names[0], second=names[1], subject=" ".join(words[4:8]).rstrip(".,:;"), body=body
    )


_KINDS: dict[str, _Kind] = {
    "stories": _story,
    "books": _book,
    "contracts": _contract,
    "e-mails": _mail,
}
RESULT_TYPES = tuple(_KINDS)
_MONTHS = "January February March April May June July August September October November".split()


def _sentences(text: str) -> list[str]:
    return [f"{part.rstrip('.')}." for part in text.replace("? ", ". ").split(". ") if part]


def _name(text: str, draw: random.Random) -> str:
    """Two words of a text that are written like names."""
    capitals = [word.strip(".,:;?") for word in text.split() if word[:1].isupper()]
    return " ".join(draw.choices([word for word in capitals if word.isalpha()] or ["Weir"], k=2))
