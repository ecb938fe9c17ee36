from __future__ import annotations

import threading

import numpy as np

from ragwitness.models.decoding import Decoding, TokenVocabulary


def test_an_answer_is_complete_only_once_its_tokens_are_described() -> None:
    """Who waits for it in another thread takes its result as soon as it says so."""
    seen: list[str | None] = []
    begun, on = threading.Event(), threading.Event()

    def slow(token: int) -> str:
        begun.set()
        on.wait(10)
        return "abc"[token]

    vocabulary = TokenVocabulary(slow, lambda ids: "".join("abc"[one] for one in ids), frozenset())
    answer = Decoding(
        vocabulary, prompt_tokens=1, room=1, temperature=0.0, top=2, stop=(), seed=None
    )
    rows = np.array([[0.0, 9.0, 1.0]], np.float32)
    pushing = threading.Thread(target=answer.push, args=(rows,))
    pushing.start()
    begun.wait(10)
    seen.append(answer.finish_reason)
    on.set()
    pushing.join()
    seen.append(answer.finish_reason)
    assert seen == [None, "length"]
    [token] = answer.result().tokens
    assert token.token == "b"
