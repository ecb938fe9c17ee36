"""Check a commit message: ``room: act`` in at most 72 characters, then a body after a blank line.

python benchmarks/subject.py FILE     the file that git gives to a commit-msg hook
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

MOST = 72
_FORM = re.compile(r"[a-z][\w, /-]*: [a-z`\"'-].*[^.]$")


def faults(message: str) -> list[str]:
    """Return what is wrong with a commit message, in words."""
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    subject = lines[0] if lines else ""
    if subject.startswith(("Merge ", "Revert ", "fixup!", "squash!")):
        return []
    words = []
    if len(subject) > MOST:
        words.append(f"the subject has {len(subject)} characters, more than {MOST}")
    if not _FORM.fullmatch(subject):
        words.append("the subject is not 'room: act in the imperative', without a full stop")
    if len(lines) > 1 and lines[1].strip():
        words.append("the second line is not blank")
    if not any(line.strip() for line in lines[2:]):
        words.append("there is no body that says why")
    return words


def main() -> None:
    """Print the faults of a message and exit with 1 where there are some."""
    words = faults(Path(sys.argv[1]).read_text(encoding="utf-8"))
    print("\n".join(words))
    sys.exit(bool(words))


if __name__ == "__main__":
    main()
