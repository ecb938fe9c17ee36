"""Inspect task: are these documents in the database of the model under evaluation?

inspect eval membership.py --model openai-api/rag/MODEL -T documents=mine -T known_out=never-shared
"""

import asyncio

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import Score, frequency, scorer
from inspect_ai.solver import solver

import ragwitness as rw


@task
def membership(documents, known_out, known_in=None, **options):
    """Give each document a sample, whose score is its verdict: in, out or inconclusive."""
    named = rw.load_documents(documents).documents
    options |= {"documents": named, "known_out": known_out, "known_in": known_in}
    samples = [Sample(id=one.id, input=f"Is {one.id} in the database?") for one in named]
    return Task(dataset=samples, solver=audit(options), scorer=verdict())


@solver
def audit(options):
    """Audit all documents together, through Inspect's own model."""
    once, results = asyncio.Lock(), []

    async def solve(state, generate):
        model, loop = get_model(), asyncio.get_running_loop()

        def answer(prompt):  # the audit asks from threads of its own
            reply = asyncio.run_coroutine_threadsafe(model.generate(prompt), loop)
            return reply.result().completion

        async with once:
            if not results:
                results.append(await asyncio.to_thread(rw.audit, answer, **options))
        (own,) = (one for one in results[0].verdicts if one.document == state.sample_id)
        state.output.completion = str(own.decision)
        state.metadata |= {"p_value": own.p_value, "q_value": own.q_value, "reason": own.reason}
        return state

    return solve


@scorer(metrics=[frequency(categories=rw.Decision)])
def verdict():
    """Score a sample by the verdict on its document."""

    async def score(state, target):
        return Score(value=state.output.completion, explanation=state.metadata["reason"])

    return score
