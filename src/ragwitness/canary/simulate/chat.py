"""How a chat model is asked: its own template around the prompt, and the token that ends its turn.

A model without a template reads the prompt as it stands.
"""

from __future__ import annotations

from typing import Any

from ragwitness.errors import ModelError

__all__ = ["PLACE", "end_of_turn", "frame_of"]

PLACE = "{prompt}"
"""Where the prompt stands in a frame."""

_SAID = "{answer}"


def frame_of(tokenizer: Any) -> str:
    """Return what stands around a prompt, up to where the answer begins; :data:`PLACE` in it once.

    A start token is left to the tokenizer where that puts one in front of every text.

    Raises:
        ModelError: The template fails, or does not show the prompt once.
    """
    if not tokenizer.chat_template:
        return PLACE
    frame = _laid_out(tokenizer, [("user", PLACE)], begins=True)
    if frame.count(PLACE) != 1:
        raise ModelError(
            "The tokenizer's chat template does not show a message as it stands.",
            "Mend its chat_template, or remove it: the prompt is then read as it is.",
        )
    start = tokenizer.bos_token
    if start and tokenizer("")["input_ids"][:1] == [tokenizer.bos_token_id]:
        frame = frame.removeprefix(start)
    return frame


def end_of_turn(tokenizer: Any) -> int | None:
    """Return the token that the chat template puts behind an answer; None where there is none.

    It need not be the end token of the tokenizer: Gemma's is ``<eos>``, its turns end otherwise.
    """
    if not tokenizer.chat_template:
        return None
    whole = _laid_out(tokenizer, [("user", PLACE), ("assistant", _SAID)], begins=False)
    behind = tokenizer(whole.rpartition(_SAID)[2], add_special_tokens=False)["input_ids"]
    marks = tokenizer.added_tokens_decoder
    return next((int(token) for token in behind if token in marks and marks[token].special), None)


def _laid_out(tokenizer: Any, turns: list[tuple[str, str]], *, begins: bool) -> str:
    from jinja2 import TemplateError

    messages = [{"role": role, "content": text} for role, text in turns]
    try:
        return str(
            tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=begins)
        )
    except (TemplateError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"The tokenizer's chat template fails: {error}.",
            "Mend its chat_template, or remove it.",
        ) from error
