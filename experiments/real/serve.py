"""Serve a chat model that answers what is asked at the same time as one batch::

    PYTHONPATH=. python experiments/real/serve.py MODEL --port 8090 --bits 8 --work build/real

Speaks ``/v1/chat/completions`` on loopback, for SAGE's roles and the systems of ``lab reproduce``.
Questions gather for half a second, and those of one temperature are answered side by side. Answers
are kept in the working folder, so that a run that goes on is not answered anew; a sample without a
seed is drawn each time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from pathlib import Path
from typing import Any

import torch
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from experiments.real.answer import Answerer, batches, kept_answers, named
from experiments.real.weights import load

_GATHER = 0.5  # seconds that a batch waits for company
_LAYOUT = ("messages", "max_tokens", "temperature", "seed", "top_logprobs")


class Batcher:
    """Questions that wait for the model.

    Args:
        answerer: Answers them.
        kept: File of what is answered.
        size: Questions at a time.
    """

    def __init__(self, answerer: Answerer, kept: Path, size: int) -> None:
        self.answerer, self.kept, self.size = answerer, kept, size
        self.waiting: dict[str, tuple[dict[str, Any], asyncio.Future[Any]]] = {}
        self.rows = kept_answers(kept)

    async def ask(self, request: Request) -> Response:
        """Answer one request, together with others of its time."""
        given = await request.json()
        body = {"max_tokens": 512} | {key: given[key] for key in _LAYOUT if key in given}
        fresh = body.get("temperature", 0) > 0 and "seed" not in body
        body |= {"seed": random.getrandbits(31)} if fresh else {}
        name = named(body)
        if name not in self.rows:
            if name not in self.waiting:
                future = asyncio.get_running_loop().create_future()
                self.waiting[name] = ({"custom_id": name, "body": body}, future)
            return self._told(await self.waiting[name][1])
        return self._told(self.rows[name])

    def _told(self, body: dict[str, Any]) -> Response:
        return JSONResponse({"object": "chat.completion", "model": "batch", **body})

    async def run(self) -> None:
        """Answer batch by batch, for ever."""
        while True:
            await asyncio.sleep(_GATHER)
            asked = [self.answerer.request(row, None) for row, _ in self.waiting.values()]
            # The fullest batch goes first, so that one question does not hold up twenty.
            for batch in sorted(batches(asked, self.size), key=len, reverse=True)[:1]:
                made = await asyncio.to_thread(self.answerer.answer, batch)
                with self.kept.open("a", encoding="utf-8") as out:
                    for row in made:
                        body = self.rows[row["custom_id"]] = row["response"]["body"]
                        out.write(json.dumps(row, ensure_ascii=False) + "\n")
                        self.waiting.pop(row["custom_id"])[1].set_result(body)
                print(f"{len(made)} answered, {len(self.waiting)} wait", flush=True)


async def serve(asked: argparse.Namespace) -> None:
    """Load the model, and answer until stopped."""
    torch.set_num_threads(1)
    model, tokenizer = load(asked.model, "cpu")
    if asked.bits == 8:
        from experiments.real.eight_bits import in_eight_bits
        from ragwitness.text.sample import load_sample

        model = in_eight_bits(model, tokenizer, " ".join(one.text for one in load_sample(300)[:3]))
    asked.work.mkdir(parents=True, exist_ok=True)
    kept = asked.work / f"served-{asked.model.stem}-{asked.bits}.jsonl"
    batcher = Batcher(Answerer(model, tokenizer), kept, asked.batch)
    path = "/v1/chat/completions"
    app = Starlette(routes=[Route(path, batcher.ask, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, port=asked.port, log_level="warning"))
    answering = asyncio.create_task(batcher.run())
    answering.add_done_callback(lambda _: setattr(server, "should_exit", True))
    await server.serve()
    answering.cancel()


def main() -> None:
    """Read the options and serve."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("model", type=Path, help="a GGUF file or a folder of transformers")
    parser.add_argument("--port", type=int, default=8090)
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("--bits", type=int, default=16, choices=(8, 16))
    parser.add_argument("--work", type=Path, default=Path("build/real"))
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
