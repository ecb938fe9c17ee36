"""Batches of prompts and answers through any causal language model of transformers.

A prompt is read once for all of its answers, which stand behind it in one row and cannot see each
other; rows of like length go together. So hardly any padding is computed. Log-probabilities are
natural, of the tokens as they are drawn at a temperature.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ragwitness.core.errors import InputError, ModelError
from ragwitness.models.hf import cache_name

Ids = list[int]

_AT_ONCE = 512  # rows of a batch that needs no gradient
_CALL = 300  # tokens whose reading takes as long as one more call of a small model
_CALLS = 1500  # the same of drawing answers, which is many calls
_WIDE = 100  # times as many on a GPU, which reads them side by side


@dataclass(frozen=True, slots=True)
class Block:
    """Rows that a model reads at once; the tokens of their answers in one list.

    Attributes:
        ids: Token ids, shape (rows, columns): a prompt, padded on the left, and its answers.
        mask: 1 where a token is, same shape; with several answers in a row whether a token sees
            another, shape (rows, 1, columns, columns).
        positions: Place of each token in its prompt with its answer, shape (rows, columns).
        columns: Where the answers begin.
        row: Of each token of an answer, shape (tokens,).
        before: Column of what stands before it, same shape.
        token: Its id, same shape.
        place: Where it belongs among (answers, width), flat, same shape.
        answers: Which answers these are, shape (answers of the block,).
        end_row: Row of each, same shape.
        end: Column of its last token, same shape.
    """

    ids: Any
    mask: Any
    positions: Any
    columns: int
    row: Any
    before: Any
    token: Any
    place: Any
    answers: Any
    end_row: Any
    end: Any

    def read(self) -> dict[str, Any]:
        """Return what a model of transformers is called with."""
        return {
            "input_ids": self.ids, "attention_mask": self.mask, "position_ids": self.positions,
            "use_cache": False,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rows:
    """Prompts with their answers, as tensors.

    Attributes:
        blocks: What is read.
        answer_mask: 1 where an answer has a token, as floats, shape (answers, width).
    """

    blocks: tuple[Block, ...]
    answer_mask: Any

    def spread(self, found: Sequence[Any]) -> Any:
        """Put a number for each token of each block in its place, shape (answers, width)."""
        import torch

        empty = torch.zeros(self.answer_mask.numel())
        places = torch.cat([block.place for block in self.blocks])
        return empty.scatter(0, places, torch.cat(list(found))).view(self.answer_mask.shape)


def batch(prompts: Sequence[Ids], answers: Sequence[Ids], pad: int, *, share: bool = False) -> Rows:
    """Lay prompts and answers out.

    Args:
        prompts: One for each answer.
        answers: Token ids.
        pad: Padding.
        share: Read a prompt once for answers to it that follow each other.

    Raises:
        InputError: There is none, or a prompt is empty.
    """
    import torch

    if not prompts or not all(prompts):
        raise InputError("There is nothing to read: no prompt, or an empty one.")
    width = max(map(len, answers))
    mask = [[1.0] * len(row) + [0.0] * (width - len(row)) for row in answers]
    # 1. Rows: a prompt, and the answers that share it.
    rows: list[list[int]] = []
    for at, one in enumerate(prompts):
        if share and rows and one == prompts[rows[-1][0]]:
            rows[-1].append(at)
        else:
            rows.append([at])

    # 2. Blocks of rows of like length.
    def size(row: list[int]) -> int:
        return len(prompts[row[0]]) + sum(len(answers[at]) for at in row)

    rows.sort(key=size)
    cuts = _cuts([size(row) for row in rows])
    blocks = tuple(
        _block(rows[start:stop], prompts, answers, width, pad)
        for start, stop in itertools.pairwise(cuts)
    )
    return Rows(blocks, torch.tensor(mask))


def _cuts(sizes: Sequence[int], call: int = _CALL) -> list[int]:
    """Where ascending lengths are cut so that padding and calls cost least, both ends included."""
    import torch

    if torch.get_default_device().type == "cuda":
        call *= _WIDE
    return _cut_at(sizes, call)


def _cut_at(sizes: Sequence[int], call: int) -> list[int]:
    count = len(sizes)
    most = count * sizes[-1]
    costs = [(at * sizes[at - 1] + (count - at) * sizes[-1], at) for at in range(1, count)]
    least, at = min(costs, default=(most, 0))
    if least + call >= most:
        return [0, count]
    return _cut_at(sizes[:at], call)[:-1] + [at + place for place in _cut_at(sizes[at:], call)]


def _block(rows: Sequence[list[int]], prompts: Sequence[Ids], answers: Sequence[Ids], width: int,
           pad: int) -> Block:  # fmt: skip
    import torch

    left = max(len(prompts[row[0]]) for row in rows)
    right = max(sum(len(answers[at]) for at in row) for row in rows)
    ids, owners, positions = [], [], []
    lists: list[list[int]] = [[] for _ in range(7)]
    row_of, before, token, place, order, end_row, end = lists
    for number, row in enumerate(rows):
        head = prompts[row[0]]
        front = left - len(head)
        text = [pad] * front + head
        owner = [-1] * front + [0] * len(head)  # -1: padding; 0: the prompt; n: the n-th answer
        spots = [0] * front + list(range(len(head)))
        for mine, at in enumerate(row, 1):
            answer = answers[at]
            start = len(text)
            text += answer
            owner += [mine] * len(answer)
            spots += range(len(head), len(head) + len(answer))
            row_of += [number] * len(answer)
            before += [left - 1, *range(start, start + len(answer) - 1)][: len(answer)]
            token += answer
            place += range(at * width, at * width + len(answer))
            order.append(at)
            end_row.append(number)
            end.append(len(text) - 1 if answer else left - 1)
        back = left + right - len(text)
        ids.append(text + [pad] * back)
        owners.append(owner + [-1] * back)
        positions.append(spots + [0] * back)
    owned = torch.tensor(owners)
    mask = (owned >= 0).long()
    if any(len(row) > 1 for row in rows):
        mask = _tree(owned)
    return Block(torch.tensor(ids), mask, torch.tensor(positions), left, *map(torch.tensor, lists))


def _tree(owned: Any) -> Any:
    """Which tokens a token sees: its prompt, and of the answers its own."""
    import torch

    query, key = owned.unsqueeze(2), owned.unsqueeze(1)
    early = torch.ones(owned.shape[1], owned.shape[1], dtype=torch.bool).tril()
    seen = ((key == 0) | ((key == query) & (key > 0))) & early
    seen |= torch.eye(owned.shape[1], dtype=torch.bool)  # padding sees itself, or it has no weights
    return seen.unsqueeze(1)


def split_rows(count: int, size: int = _AT_ONCE) -> Iterator[slice]:
    """Yield slices that cover ``count`` rows."""
    for start in range(0, count, size):
        yield slice(start, start + size)


def log_probs(
    model: Any, rows: Rows, *, temperature: float = 1.0, banned: int | None = None
) -> Any:
    """Return the log-probability of every token of the answers, shape (answers, width).

    Where an answer has ended it is 0.

    Args:
        model: Causal language model.
        rows: Prompts and answers.
        temperature: Logits are divided by it.
        banned: Token that is never drawn, such as the padding.
    """
    found = []
    for block in rows.blocks:
        first = block.columns - 1
        kept = block.ids.shape[1] - first
        out = model(**block.read(), logits_to_keep=kept)
        logits = _ready(out.logits[block.row, block.before - first], temperature, banned)
        chosen = logits.gather(1, block.token.unsqueeze(1)).squeeze(1)
        found.append(chosen - logits.logsumexp(1))
    return rows.spread(found)


def generate(
    model: Any,
    prompts: Sequence[Ids],
    *,
    longest: int,
    eos: int,
    pad: int,
    generator: Any = None,
    temperature: float = 1.0,
) -> list[Ids]:
    """Draw an answer to each prompt, its end token included where it got that far.

    The padding is never drawn, unless it is the end token.

    Args:
        model: Causal language model.
        prompts: Token ids.
        longest: Most tokens of an answer.
        eos: End token.
        pad: Padding.
        generator: torch's; None takes the likeliest token each time.
        temperature: Of the draw.

    Raises:
        ModelError: A probability is not a number: training has diverged.
    """
    import torch

    banned = None if pad == eos else pad
    order = sorted(range(len(prompts)), key=lambda at: len(prompts[at]))
    found: list[Ids] = [[] for _ in prompts]
    with torch.no_grad():
        for part in split_rows(len(order)):
            heads, places = _distinct([prompts[at] for at in order[part]])
            cuts = _cuts([len(one) for one in heads], _CALLS)
            drawn = [
                row
                for start, stop in itertools.pairwise(cuts)
                for row in _decode(
                    model, heads[start:stop], places[start:stop], longest, eos, pad, banned,
                    generator, temperature,
                )
            ]  # fmt: skip
            for at, row in zip(order[part], drawn, strict=True):
                found[at] = _cut(row, eos)
    return found


def _distinct(prompts: Sequence[Ids]) -> tuple[list[Ids], list[int]]:
    """Prompts that follow each other and are the same, once, with how often."""
    heads: list[Ids] = []
    counts: list[int] = []
    for one in prompts:
        if heads and heads[-1] == one:
            counts[-1] += 1
        else:
            heads.append(one)
            counts.append(1)
    return heads, counts


def completion_scores(
    model: Any, prompts: Sequence[Ids], answers: Sequence[Ids], pad: int
) -> list[float]:
    """Return log p(answer | prompt) in nats, summed over its tokens (2604.22191, App. C.3)."""
    import torch

    found: list[float] = []
    with torch.no_grad():
        for part in split_rows(len(prompts)):
            scores = log_probs(model, batch(prompts[part], answers[part], pad)).sum(1)
            found += scores.tolist()
    return found


def _ready(logits: Any, temperature: float, banned: int | None) -> Any:
    logits = logits.float() / temperature
    if banned is not None:
        logits = logits.clone()
        logits[..., banned] = -1e9
    return logits


def _decode(model: Any, heads: Sequence[Ids], counts: Sequence[int], longest: int, eos: int,
            pad: int, banned: int | None, generator: Any,
            temperature: float) -> list[Ids]:  # fmt: skip
    """Draw as many answers to each prompt as it is asked for; a prompt is read once."""
    import torch

    block = _block([[at] for at in range(len(heads))], heads, [[] for _ in heads], 0, pad)
    out = model(input_ids=block.ids, attention_mask=block.mask, position_ids=block.positions,
                logits_to_keep=1, use_cache=True)  # fmt: skip
    name, often = cache_name(model), torch.tensor(counts)
    cache = getattr(out, name)
    if any(count > 1 for count in counts):
        cache.batch_select_indices(torch.arange(len(heads)).repeat_interleave(often))
    logits = out.logits[:, -1].repeat_interleave(often, 0)
    mask = block.mask.repeat_interleave(often, 0)
    place = block.positions[:, -1:].repeat_interleave(often, 0)
    done = torch.zeros(len(mask), 1, dtype=torch.bool)
    taken = []
    for step in range(longest):
        token = _draw(_ready(logits, temperature, banned), generator)
        taken.append(token)
        done |= token == eos
        if step + 1 == longest or bool(done.all()):
            break
        mask = torch.cat([mask, torch.ones_like(token)], 1)
        place = place + 1
        out = model(input_ids=token, attention_mask=mask, position_ids=place,
                    use_cache=True, **{name: cache})  # fmt: skip
        logits = out.logits[:, -1]
    drawn: list[Ids] = torch.cat(taken, 1).tolist()
    return drawn


def _draw(logits: Any, generator: Any) -> Any:
    import torch

    if generator is None:
        return logits.argmax(1, keepdim=True)
    chances = logits.softmax(1)
    if not bool(torch.isfinite(chances).all()):
        raise ModelError(
            "The policy gives probabilities that are not numbers: its training has diverged.",
            "Lower the learning rate.",
        )
    return torch.multinomial(chances, 1, generator=generator)


def _cut(row: Ids, eos: int) -> Ids:
    return row[: row.index(eos) + 1] if eos in row else row
