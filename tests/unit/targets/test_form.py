"""One form at both ends: what is planted and what is probed are shown alike."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest

from ragwitness.core.errors import InputError, TargetResponseError
from ragwitness.core.types import Query
from ragwitness.targets.conversation import InForm, Turn, in_form, open_conversation, open_deployed
from ragwitness.targets.form import ShownForm, parted
from ragwitness.targets.transport import RetryPolicy, TransportOptions
from tests.support.voting_service import Service, described, serving

ONCE = TransportOptions(retry=RetryPolicy(retries=0))
DOCUMENT, QUESTION = "A text with {braces}.", "What is {context}?"


class Alternating(Service):
    """A chat whose template wants roles to alternate, as Gemma's and Mistral's do."""

    said = "Conversation roles must alternate user/assistant/user/assistant/..."

    def reply(self, path: str, body: dict) -> tuple[int, object]:
        roles = [one["role"] for one in body.get("messages", [])]
        if any(a == b for a, b in itertools.pairwise(roles)):
            return 400, {"error": {"message": self.said}}
        return super().reply(path, body)


def both_ends(service: Service, form: ShownForm) -> tuple[list, list]:
    """What a chat was sent when it was planted in, and when it was probed."""

    async def work(url: str) -> None:
        planted = await open_conversation(f"{url}/v1#toy", ONCE, form=form)
        target = in_form(await open_deployed(f"{url}/v1#toy", ONCE, form), form)
        try:
            await planted.send(Turn("e1", DOCUMENT, QUESTION))
            answer = await target.ask(Query(form.joined(DOCUMENT, QUESTION), 48, 1.0, seed=3))
            assert answer.text.startswith("FINAL:")
        finally:
            await planted.close()
            await target.close()

    with serving(service) as url:
        asyncio.run(work(url))
    return service.chats[0], service.chats[-1]


@pytest.mark.parametrize("kind", ["messages", "one", "attachment"])
def test_a_probe_sends_what_was_planted_message_by_message(kind: str) -> None:
    planted, probed = both_ends(Service(), ShownForm(kind))
    if kind == "attachment":  # the file's name is the trace's
        assert planted[0]["content"][0]["file"].pop("filename") == "e1.txt"
        probed[0]["content"][0]["file"].pop("filename")
    assert planted == probed
    assert len(planted) == (2 if kind == "messages" else 1)


@pytest.mark.parametrize(
    "said",
    [
        Alternating.said,
        # As hosts of their own templates word it.
        "After the (optional) system message(s), user or tool message(s) should alternate with"
        " assistant message(s).",
        "user and assistant roles should be alternating.",
    ],
)
def test_where_roles_must_alternate_both_ends_send_one_message(said: str) -> None:
    service = Alternating()
    service.said = said
    planted, probed = both_ends(service, ShownForm())
    assert planted == probed == [{"role": "user", "content": f"{DOCUMENT}\n\n{QUESTION}"}]
    with pytest.raises(TargetResponseError, match="500"):  # another error is no such wish
        both_ends(Service(dies=0), ShownForm())


def test_a_described_service_is_probed_through_its_own_description(tmp_path: Path) -> None:
    service = Service()

    async def work(url: str) -> None:
        target = await open_deployed(described(tmp_path, url), ONCE, ShownForm())
        assert isinstance(target, InForm)
        await target.ask(Query(ShownForm().joined(DOCUMENT, QUESTION)))
        await target.close()

    with serving(service) as url:
        asyncio.run(work(url))
    assert service.asked == [(DOCUMENT, QUESTION)]


def test_a_joined_prompt_gives_its_parts_back_and_a_form_without_a_place_is_refused() -> None:
    assert parted(ShownForm().joined(DOCUMENT, QUESTION)) == (DOCUMENT, QUESTION)
    assert parted("A question alone") == ("", "A question alone")
    text = ShownForm("one", "{question}|{context}").joined(DOCUMENT, QUESTION)
    assert text == f"{QUESTION}|{DOCUMENT}"
    for wrong in ({"kind": "letters"}, {"template": "{context}"}):
        with pytest.raises(InputError):
            ShownForm(**wrong)
