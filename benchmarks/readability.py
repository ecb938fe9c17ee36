"""How hard five pages are to read: words, minutes, long sentences, terms that nobody explains.

    python benchmarks/readability.py [--show] [PAGE …]

A *term* is a word that is not among the 20,000 most frequent English ones (symspellpy's list), is
no name of an option, file or method (`code`), and is neither in the glossary nor on the page in
bold or in brackets beside it. Cells of tables and items of lists end a sentence. --show prints
what was counted. A reader is taken to read 220 words a minute.
"""

from __future__ import annotations

import re
import sys
from importlib import resources
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/audit.md", "docs/leak.md", "docs/view.md", "docs/evidence.md")
LONG, KNOWN, A_MINUTE = 30, 20_000, 220


def sentences(markdown: str) -> list[str]:
    """Return the sentences of a page, without its code, and its links as their texts."""
    text = re.sub(r"^```.*?^```$", "\n\n", markdown, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"^(\|[-|]+|#+ .*)$", "\n\n", text, flags=re.MULTILINE)
    blocks = re.split(r"\n\s*\n|^\s*(?:[-*>]|\d+\.) |\s*\|\s*", text, flags=re.MULTILINE)
    parts = (" ".join(block.split()) for block in blocks)
    found = (
        one for part in parts for one in re.split(r"(?<=[.!?])\)?\"? (?=[\"(`*]*[A-Z0-9`-])", part)
    )
    return [one for one in found if re.search(r"[A-Za-z]{2}", one)]


def terms(page: str, known: set[str]) -> list[str]:
    """Return the words of the sentences that are neither common nor explained."""
    explained = re.sub(r"[^a-z]+", " ", " ".join(re.findall(r"\*{1,2}(.+?)\*{1,2}", page)).lower())
    plain = re.sub(r"`[^`]*`|https?:\S+", " ", " ".join(sentences(page)))
    words = re.findall(r"(?<![\w/.-])[a-z]{4,}(?![\w/])", plain)
    stems = {
        word: {word, word.removesuffix("s"), word.removesuffix("ed"), word.replace("ies", "y")}
        for word in words
    }
    return sorted(w for w, forms in stems.items() if not forms & (known | {*explained.split()}))


def main(arguments: list[str]) -> None:
    """Print a row for each page."""
    listed = resources.files("symspellpy") / "frequency_dictionary_en_82_765.txt"
    frequent = [line.split()[0] for line in listed.read_text("utf-8-sig").splitlines()[:KNOWN]]
    glossary = (ROOT / "docs/glossary.md").read_text(encoding="utf-8").lower()
    known = {*frequent, *re.findall(r"[a-z]+", glossary)}
    heads = "page", "words", "minutes", "sentences", f"over {LONG} words", "unexplained terms"
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for page in [one for one in arguments if one != "--show"] or PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        parts, unknown, count = sentences(text), terms(text, known), len(text.split())
        long = [one for one in parts if len(one.split()) > LONG]
        row = (page, count, f"{count / A_MINUTE:.1f}", len(parts), len(long), len(unknown))
        print(f"| {' | '.join(map(str, row))} |")
        if "--show" in arguments:
            print("\n".join([*(f"  {len(one.split())}: {one}" for one in long), f"  {unknown}"]))


if __name__ == "__main__":
    main(sys.argv[1:])
