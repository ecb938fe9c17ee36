import asyncio

import pytest

from ragwitness.core.errors import InputError, TargetError
from ragwitness.core.types import Answer, Query
from ragwitness.rag.config import TEMPLATES
from ragwitness.service.app import Generator, make_generator
from tests.support import service
from tests.support.loopback import chat_body, loopback, reply
from tests.support.parrot import Parrot


def test_answers_side_by_side_see_their_own_texts_alone() -> None:
    generator = Generator(Parrot(), TEMPLATES["plain"])

    async def ask() -> list[Answer]:
        return list(
            await asyncio.gather(
                *(generator.answer(Query("q"), [f"text{i}", f"more{i}"], ()) for i in range(20))
            )
        )

    for i, answer in enumerate(asyncio.run(ask())):
        assert answer.text == f"text{i}\n\nmore{i}"
    nothing = asyncio.run(generator.answer(Query("q"), [], ()))
    assert nothing.text == "nothing known"


def answered(spec: str, texts: list[str], stop: tuple[str, ...] = ()) -> Answer:
    return asyncio.run(make_generator(spec).answer(Query("which door?"), texts, stop))


@pytest.mark.slow
def test_another_server_is_shown_texts_and_query() -> None:
    with service.parrot() as spec:
        answer = answered(spec, ["door 1", "door 2"])
    assert answer.text.endswith("door 1\n\ndoor 2\nwhich door?")


def test_another_server_that_fails_is_a_target_error() -> None:
    with loopback(reply("no", 400)) as server, pytest.raises(TargetError):
        make_generator(f"{server.url}#m")
    with loopback(reply(chat_body("fine"))) as server:
        assert answered(f"{server.url}#m", ["t"], ("end",)).text == "fine"
        body = server.requests[-1][1]
    assert body["model"] == "m"
    assert body["stop"] == ["end"]
    assert [message["role"] for message in body["messages"]] == ["system", "user"]


@pytest.mark.parametrize("spec", ["none", "http://"])
def test_unusable_generators_are_refused(spec: str) -> None:
    with pytest.raises(InputError):
        make_generator(spec)
    with pytest.raises(InputError):
        make_generator("reader", "no-such-template")
