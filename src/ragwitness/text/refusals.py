"""Whether an answer is a refusal, for whoever asked."""

from __future__ import annotations

import re

__all__ = ["refuses"]

# "I am sorry to hear that" opens many a reply in a dialogue and refuses nothing, unless the
# sentence goes on with "but I cannot", or the next one declines. That one is read narrowly: "I
# can't stress enough", "I can't be sure" and "I can't diagnose it, but" open answers.
_CANNOT = (
    r"(i|we)('m| am|'re| are)? (very |so )?"
    r"(can't|cannot|can not|won't|will not|(unable|not able|not allowed|not permitted) to)"
)
_ON_SECOND_THOUGHT = r"but|however|still|that said|nevertheless|without|until|unless|before"
_UNCERTAIN = r"certain\w*|definit\w*|exactly|fully|completely|sure"
_DECLINES = (
    r"((but|however|unfortunately|sadly|regrettably|i'm afraid|as an ai\b[^.!?,\n]*),? )?("
    rf"{_CANNOT} (help|assist)( you)?( (with|in) (that|this|it)\b[^.!?,\n]*)?\s*([.!?,;\n]|$)|("
    rf"{_CANNOT} ((help|assist)\b(?! (but|it|\w+ing)\b)|(answer|share|provide|disclose|reveal"
    r"|discuss|repeat|quote|comply)\b|do (that|this|so)\b)"
    r"|i (do not|don't) have (access|enough|any information|information)\b"
    r"|the (given |provided )?\[?(context|documents?)\]? (do|does) not\b"
    rf"|there is no (information|mention)\b)(?!.*\b({_ON_SECOND_THOUGHT}|{_UNCERTAIN})\b))"
)
_SORRY = (
    r"sorry\b(?! (to (hear|know|learn|see|read)|that you|for your|about your)\b"
    r"(?![^.!?\n]*\bbut (i|we)('m| am|'re| are)? "
    r"(can't|cannot|can not|won't|will not|unable|not able|not allowed|do not|don't)\b)"
    rf"(?![^.!?\n]*[.!?\n]\W*{_DECLINES}))"
)
_REFUSAL = re.compile(
    rf"^\W*((i'm|i am|we are|we're) (very |so )?({_SORRY}|(unable|afraid|not able|not allowed)\b)"
    rf"|{_SORRY}|apologies\b"
    r"|i apologi[sz]e\b|i (can't|cannot|can not|won't|will not)\b"
    r"|as an ai\b|unfortunately\b|i (do not|don't) have (access|enough|information)"
    r"|the (given |provided )?\[?(context|documents?)\]? (do|does) not\b"
    r"|there is no (information|mention)\b)",
    re.IGNORECASE | re.DOTALL,
)


def refuses(text: str) -> bool:
    """Whether an answer opens as a refusal, an apology, or with nothing found."""
    return _REFUSAL.match(text.replace("\u2019", "'")) is not None
