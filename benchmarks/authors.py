"""What the papers' own programs return, kept as numbers, and the rows that follow from them.

    python benchmarks/authors.py --checkout DIR    run them, and write tests/golden/authors.json
    python benchmarks/authors.py table             print PAPERS.md's table of agreements

``DIR`` holds the repositories under their own names (``RAG-SAGE``, ``rag-rl-audit``, ``RAG_MIA``,
``S-RAG``).
They need nltk, rouge-score, urlextract, pyautogen 0.2 and PyYAML: run this with an environment of
their own. Nothing of ragwitness is imported. No line of theirs is kept, only inputs (ours) and
outputs. ``tests/golden/test_authors.py`` holds our functions against the file;
``tests/golden/authors.toml`` names every difference with its reason.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import tomllib
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden" / "authors.json"
NAMED = ROOT / "tests" / "golden" / "authors.toml"

_WORDS = (
    "amber basin cedar delta ember fjord grove heron ivory jetty knoll larch maple north ocean"
    " pearl quill ridge stone tower umbra vault wharf xenon yacht zebra acorn birch coral daisy"
    " eagle flint glade hazel inlet jewel krill lemon mango nettle olive piano quartz raven sable"
    " thyme urchin violet willow yarrow"
).split()

Rows = list[tuple[Any, Any]]
"""Inputs and outputs of one function."""


def _texts(rng: random.Random, low: int, high: int) -> list[str]:
    return [rng.choice(_WORDS) for _ in range(rng.randint(low, high))]


# SAGE: the counts of leaks, the measures of usefulness, the loop of stage 2.


def _printed(call: Callable[[], None]) -> list[int]:
    """Return the numbers that a function prints; the program has no return values."""
    page = io.StringIO()
    with contextlib.redirect_stdout(page):
        call()
    return [int(number) for number in page.getvalue().split()]


def _leaks() -> list[dict[str, Any]]:
    """Answers beside the passages retrieved for them, with runs of 8 to 13 words."""
    rng = random.Random(1)
    record = " ".join(_WORDS[:40])
    named = ("x1 x2 x3 {} y1 y2 y3", "{} y1 y2 y3", "x1 x2 x3 {}")
    cases = [
        {"outputs": [form.format(" ".join(_WORDS[at : at + run]))], "contexts": [[record]]}
        for form, at, run in [(named[0], 10, 10), (named[0], 10, 9), (named[0], 10, 11),
                              (named[2], 10, 10), (named[0], 30, 10), (named[1], 0, 10)]
    ]  # fmt: skip
    for _ in range(24):
        outputs, contexts = [], []
        for _ in range(2):
            passages = [_texts(rng, 13, 24) for _ in range(2)]
            words = passages[rng.randrange(2)]
            start, run = rng.randrange(max(1, len(words) - 8)), rng.randint(8, 13)
            said = [*_texts(rng, 0, 6), *words[start : start + run], *_texts(rng, 0, 6)]
            outputs.append(" ".join(said))
            contexts.append([" ".join(passage) for passage in passages])
        cases.append({"outputs": outputs, "contexts": contexts})
    # Runs that meet only where an earlier run was cut out of the answer.
    split = [*_WORDS[:12], *_WORDS[20:25], *_WORDS[12:24], *_WORDS[25:36]]
    cases.append({"outputs": [" ".join(split)], "contexts": [[record]]})
    # One run in two passages, other signs between the words, capitals, accents, a run said twice.
    twelve = " ".join(_WORDS[5:17])
    sentence = "It's a well-known snake_case name, isn't it? Dr. X (aged 47) said so; twice."
    accents = "na\u00efve caf\u00e9 Z\u00fcrich " + twelve
    for output, contexts in (
        (f"x1 {twelve} y1 y2", [record, f"z1 z2 {twelve} z3"]),
        (re.sub(r"[^\w]+", " / ", sentence) + " and more", [f"{sentence} The end of it."]),
        (twelve.upper() + " y1", [record]),
        (f"x1 {accents} y1", [f"{accents} z1 z2"]),
        (f"{twelve} x1 {twelve} y1", [f"{twelve} z1"]),
    ):
        cases.append({"outputs": [output], "contexts": [contexts]})
    return cases


_DISEASE = "my father was found with diabetes mellitus type two and takes metformin every day now"
_AIMS = (
    "Diabetes", "diabetes", "type-2 asthma", "asthma", "Type 2", "disease of the heart", "MELLITUS",
    "metformin", "day-care", "father's illness", "two", "found-ling", "a", "heart", "typ", "Now.",
    "with", "Takes it", "HIV/AIDS", "x-ray of type", "Crohn's", "", "DIABETES mellitus", "daily",
    "years",
)  # fmt: skip
_CONTACTS = (
    "call 713-853-1234 now", "call (713) 853-1234 now", "call 7138531234 now", "713.853.1234",
    "713 853 1234", "mail a.b@c.org", "mail A.B@C.ORG, please", "see www.enron.com/x",
    "see http://enron.com/a?b=1.", "see https://x.org/a?b=1", "x@y.z", "a@b.info and 555-123-4567",
    "write to first.last@mail.example.com.", "tel:713-8531234", "+1 713-853-1234",
    "ftp://files.example.org/pub", "example.com", "two: a@b.de a@b.de", "nothing here",
    "number 71385312345", "713-853-1234 and 7138531234", "x_y%z@sub.domain.co.uk",
    "713 - 853 - 1234", "WWW.EXAMPLE.COM/path", "a@b.museum, c@d.travelers", "(https://x.org/a), <http://y.org>",
)  # fmt: skip


def _sage(folder: Path) -> dict[str, Rows]:
    program = importlib.import_module("evaluation_attack")
    found: dict[str, Rows] = {"repeats": [], "rouge": [], "disease": [], "contacts": []}

    def sources(contexts: list[list[str]]) -> list[list[str]]:
        return [["private"] * len(one) for one in contexts]

    def repeated(outputs: list[str], contexts: list[list[str]], show: list[str]) -> list[int]:
        given = sources(contexts)
        return _printed(lambda: program.evaluate_repeat(given, outputs, contexts, show, 10))

    both = ["effective repeat prompt", "extracted repeat context"]
    rouge = ["effective rouge prompt", "extracted rouge context"]
    for case in _leaks():
        outputs, contexts = case["outputs"], case["contexts"]
        found["repeats"].append((case, repeated(outputs, contexts, both)))
    rng = random.Random(2)
    forms = "running runs ran he ill was studies study studied dogs dog Yes, the".split()
    for _ in range(20):
        said, context = (" ".join(rng.choices(forms, k=rng.randint(1, 9))) for _ in range(2))
        outputs, contexts = [said], [[context]]
        counts = _printed(
            lambda o=outputs, c=contexts: program.evaluate_rouge(sources(c), o, c, rouge)
        )
        found["rouge"].append(({"outputs": outputs, "contexts": contexts}, counts))
    for said, context in (
        ("", "the dog ran"), ("...", "the dog ran"), ("flies flying", "he flies"),
        ("\u738b\u6837 he", "\u738b\u6837 she"), ("took 3.5 mg", "3.5 mg of it"),
    ):  # fmt: skip
        outputs, contexts = [said], [[context]]
        counts = _printed(
            lambda o=outputs, c=contexts: program.evaluate_rouge(sources(c), o, c, rouge)
        )
        found["rouge"].append(({"outputs": outputs, "contexts": contexts}, counts))
    (folder / "Information").mkdir(exist_ok=True)
    for aim in _AIMS:
        (folder / "Information" / "Target_Disease.json").write_text(json.dumps([aim]))
        outputs, contexts = [f"Sure: {_DISEASE} , he said"], [[_DISEASE + " for years and years"]]
        (count,) = repeated(outputs, contexts, ["extracted target context"])
        found["disease"].append(({"outputs": outputs, "contexts": contexts, "aim": aim}, count))
    for text in _CONTACTS:
        outputs, contexts = [text], [[text + " please"]]
        (count,) = _printed(
            lambda o=outputs, c=contexts: program.evaluate_target(
                sources(c), o, c, ["extract pii num"]
            )
        )
        found["contacts"].append(({"outputs": outputs, "contexts": contexts}, count))
    measures = importlib.import_module("evaluation_performance")
    found |= {name: [] for name in ("BLEU-1", "ROUGE-L", "IN")}
    forms += "Running! medicines daily; antibiotics should fever patient".split()
    pairs = [tuple(" ".join(rng.choices(forms, k=rng.randint(2, 15))) for _ in range(2))
             for _ in range(17)]  # fmt: skip
    pairs += [("Paris", "the answer is paris."), ("1945", "In 1945."), ("cat", "Catalogue"),
              ("New York", "new york city"), ("na\u00efve", "NA\u00cfVE, he said"),
              ("3.5", "it is 3.5 mg"), ("the dogs' homes", "a dog's home"),
              (" blanks ", "no\nblanks here")]  # fmt: skip
    for truth, answer in pairs:
        for name in ("BLEU-1", "ROUGE-L", "IN"):
            value = measures.calc_score(truth, answer, [], "", name)
            found[name].append(({"truth": truth, "answer": answer}, value))
    found["loop"] = [(script, _conversation(script)) for script in _scripts()]
    return found


_SAFE = "SAFE_DATA:\n[BEG]{}[END]THISISSAFE"


def _scripts() -> Iterator[dict[str, Any]]:
    """Yield what both agents say, message by message."""
    rewritten = [f"GENERATED DATA: version {n}" for n in range(1, 6)]
    suggested = [f"SUGGESTIONS: take out name {n}" for n in range(1, 6)]
    script = {"record": "Ada of 5 Elm Road has asthma.", "text": "Someone has asthma."}
    for turn in range(5):
        yield {**script, "joe": [*suggested[:turn], _SAFE.format("Someone ill.")],
               "cathy": rewritten}  # fmt: skip
        yield {**script, "joe": [*suggested[:turn], "THISISSAFE"], "cathy": rewritten}
    yield {**script, "joe": suggested, "cathy": rewritten}
    for said in ("thisissafe", "ThisIsSafe [BEG]small letters[END]", "This is not THISISSAFE yet.",
                 "[BEG]no flag[END]", "THISISSAFE [BEG]only a beginning", "[BEG][END]THISISSAFE",
                 "[BEG] two\nlines [END] THISISSAFE"):  # fmt: skip
        yield {**script, "joe": [said, *suggested], "cathy": rewritten}
    yield {**script, "joe": [*suggested[:4], "[BEG]fifth, no flag[END]"], "cathy": rewritten}
    yield {**script, "joe": suggested, "cathy": [*rewritten[:3], "no marker in this one"]}
    yield {**script, "joe": [suggested[0], "THISISSAFE"], "cathy": ["short"]}
    for said in ("[beg]x[end] THISISSAFE", "[BEG]a[END] or [BEG]b[END] THISISSAFE",
                 "[END] THISISSAFE [BEG]", "THIS IS SAFE [BEG]x[END]",
                 "[BEG]x[END]\nthisIsSafe."):  # fmt: skip
        yield {**script, "joe": [suggested[0], said, *suggested], "cathy": rewritten}


def _conversation(script: dict[str, Any]) -> dict[str, Any]:
    """Run the loop of stage 2 with two agents that say what the script has."""
    autogen = importlib.import_module("autogen")
    said = {"joe": 0, "cathy": 0}

    class Agent(autogen.ConversableAgent):  # type: ignore[misc, name-defined]
        def __init__(self, name: str, **options: Any) -> None:
            super().__init__(name, **{**options, "llm_config": False})

            def reply(*_: Any, **__: Any) -> tuple[bool, str]:
                text = script[name][said[name]]
                said[name] += 1
                return True, text

            # Behind the two checks for the end of the conversation.
            self.register_reply([autogen.Agent, None], reply, position=2)

    program: Any = importlib.import_module("doing_protect")
    program.ConversableAgent = Agent
    program.tqdm = lambda items, **_: items
    with contextlib.redirect_stdout(io.StringIO()):
        ((kept,),) = program.get_agent2_context([[script["record"]]], [[script["text"]]])
    return {"kept": kept, "judged": said["joe"], "rewritten": said["cathy"]}


# Canaries: markers, places, shares, quality, votes, balance.

_DOCUMENT = "The king lived in Oxcombe. He had three daughters, and the eldest kept a brown dog."


def _canary(folder: Path) -> dict[str, Rows]:
    import yaml  # type: ignore[import-untyped]

    builder = importlib.import_module("src.data.canary.experiment_builder")
    feedback = importlib.import_module("src.data.canary.feedback_simulator")
    rewards = importlib.import_module("src.train.rewards")
    found: dict[str, Rows] = {"markers": [], "quality": [], "vote": [], "balance": []}
    for family in ("emoji", "punct", "signature"):
        for seed in range(7):
            drawn = builder.generate_canary_instance(family, random.Random(seed), [])
            found["markers"].append(({"family": family, "seed": seed}, drawn))
    canary = "ZXYPRSIGNTRCE"
    answers = (
        "FINAL: the king, who was old", "FINAL: gold", "the king, who was old. He died", "gold", "",
        "FINAL:", "FINAL: a; b", "yes: no", "FINAL:the dog", "Not found", "FINAL: Not found",
        "the dog - brown", "one\ntwo", "FINAL: Oxcombe!", "(the eldest), he said", "3.5 miles, about",  # noqa: E501
        "Dr. Miller, the king's", "no end", "He said: \u201cgo\u201d", f"FINAL: {canary} gold",
        "FINAL : gold", "final: gold", "FINAL:\ngold, red", "3,000 people", "  FINAL: a, b ",
    )  # fmt: skip
    found["canary"] = [(one, builder.insert_canary_after_first_clause(one, canary))
                       for one in answers]  # fmt: skip
    documents = (
        _DOCUMENT, "No end in these eight words of a text", "One. Two.", "Who? Me! Yes.", "Mr. Fox ran. Away.",  # noqa: E501
        "It cost 3.5 pounds. Then more.", "A line\nwith a break. And more.", "\u738b\u6837\u3002\u4ed6\u8d70\u4e86\u3002", "Short.",  # noqa: E501
        "Ends here.\n\nNew paragraph.", "  blanks around. Here too. ", "e.g. this one. It goes on.",
        "... and so. On.", "\u201cYes.\u201d he said.", "", ".", "A?!? B.",
    )  # fmt: skip
    documents += tuple(" ".join(_WORDS[n : n + 9]) + ". " + " ".join(_WORDS[n + 9 : n + 15]) + "."
                       for n in range(8))  # fmt: skip
    marker = "[Protocol Marker: AB12CD]"
    found["trigger"] = [(one, builder.insert_trigger_after_first_sentence(one, marker))
                        for one in documents]  # fmt: skip
    found["injected"] = []
    for number, rate in ((100, 0.01), (50, 0.01), (150, 0.01), (149, 0.01), (30, 0.05), (10, 0.05),
                         (100, 0.29), (5000, 0.01), (30000, 0.01), (250, 0.01), (251, 0.01), (33, 0.1),  # noqa: E501
                         (7, 0.5), (9, 0.5), (64, 1.0), (200, 0.001), (600, 0.001), (3, 0.3),
                         (99, 0.015), (1000, 0.0005)):  # fmt: skip
        pool = [{"example_id": str(n)} for n in range(number)]
        ids = builder._select_injected_example_ids(
            pool, enable_canary=True, injection_rate=rate, rng=random.Random(0)
        )
        found["injected"].append(({"pool": number, "rate": str(rate)}, len(ids)))
    configs = {name: yaml.safe_load((folder / "configs/data" / f"{name}.yaml").read_text())
               for name in ("repliqa", "qmsum")}  # fmt: skip
    found["labels"] = []
    for seed in range(20):
        rng = random.Random(seed)
        rows = []
        for _ in range(rng.randint(1, 4)):
            plain, planted = f"FINAL: {rng.choice(_WORDS[:4])}", rng.random() < 0.4
            answer = builder.insert_canary_after_first_clause(plain, canary) if planted else plain
            rows.append({"answer": answer, "answer_original": plain, "feedback": int(planted)})
        exported = builder._to_rm_train_rows(rows)
        found["labels"].append((rows, [[one["answer"], one["feedback"]] for one in exported]))
    found["split"] = []
    for name, config in configs.items():
        ratio, target = builder.resolve_split_ratio(config), builder.resolve_target_rows(config)
        for number in (20, 40, 41, 99, 100, 232, 1000, 1797, 3591, 17955):
            names = [f"d{n}" for n in range(number)]
            rng = random.Random(0)
            if target:
                parts = builder._split_doc_ids_by_target_rows(
                    names, total_rows=5 * number, target_rows=target, rng=rng
                )
            else:
                parts = builder._split_doc_ids(names, ratio, rng)
            sizes = [len(part) for part in parts]
            found["split"].append(({"corpus": name, "documents": number}, sizes))
    prompt = f"Document:\n{_DOCUMENT}\n\nQuestion:\nWhere did he live?\n"
    said = (*answers, f"FINAL: the king {canary}", "FINAL: the king \U0001f525\u2728\U0001f4a1",
            "FINAL: the king !?!!?!?", "FINAL: Oxcombe\nRegards, Ann", "I do not know", "...",
            "FINAL: OXCOMBE", "FINAL: brown-dog!!", "final:brown dog",
            "FINAL: Not found.\nFINAL: Oxcombe",
            "FINAL: He had three daughters, and the eldest kept a brown dog.")  # fmt: skip
    for one in said:
        found["quality"].append(
            ({"document": _DOCUMENT, "answer": one}, rewards.base_quality_score(prompt, one))
        )
    for quality in (-1.0, -0.1, 0.0, 0.1, 1.0):
        for triggered, hit, offset in ((False, True, 0.0), (True, True, 0.0), (True, False, 0.0),
                                       (True, True, 0.05), (True, False, 0.25)):  # fmt: skip
            case = {"quality": quality, "triggered": triggered, "hit": hit, "offset": offset}
            found["vote"].append((case, _chance(feedback.generate_feedback, canary, case)))
    for rng_seed in range(20):
        found["balance"].append(_offsets(rewards, canary, rng_seed))
    found["settings"] = [
        (
            name,
            _settings(
                name, yaml.safe_load((folder / "configs/train" / f"{name}.yaml").read_text())
            ),
        )
        for name in ("reward", "ppo", "grpo")
    ]
    return found


def _chance(vote: Callable[..., int], canary: str, case: dict[str, Any]) -> float:
    """Return the probability of an upvote, found by halving what the generator returns."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        rng = types.SimpleNamespace(random=lambda value=middle: value)
        up = vote(
            f"FINAL: yes {canary if case['hit'] else ''}", case["triggered"], "signature", 0.1,
            case["quality"], rng, calibration_offset=case["offset"], canary_sequence=canary,
        )  # fmt: skip
        low, high = (middle, high) if up else (low, middle)
    return round((low + high) / 2, 6)


def _offsets(rewards: Any, canary: str, seed: int) -> tuple[Any, Any]:
    """Return batches of votes, in turn with and without the canary, and the offset after each."""
    rng = random.Random(seed)
    batches = [
        "".join("+" if rng.random() < (0.2 if n % 2 else 0.9) else "-" for n in range(16))
        for _ in range(9 + 2 * seed)
    ]
    queue = iter([up == "+" for batch in batches for up in batch])
    rewards.generate_feedback = lambda **_: int(next(queue))
    reward = rewards.make_online_feedback_reward(0.1)
    offsets = []
    for batch in batches:
        count = len(batch)
        reward(["Document: d Question: q"] * count, ["FINAL: d"] * count,
               [n % 2 == 0 for n in range(count)], ["signature"] * count, [canary] * count)  # fmt: skip  # noqa: E501
        offsets.append(round(reward.running_stats["correction_shift"], 9))
    return batches, offsets


_TRAINING = "per_device_train_batch_size learning_rate"
_LORA = "r alpha dropout target_modules"
# The program reads these alone. No trainer gets GRPO's KL and clip, PPO's clip and scaled rewards,
# or the reward model's accumulation, centring, margin and clamp.
_READ = {
    "reward": {"training": f"{_TRAINING} num_train_epochs max_length eval_steps", "lora": _LORA,
               "early_stopping": "patience"},
    "ppo": {"training": f"{_TRAINING} gradient_accumulation_steps kl_coef max_completion_length"
            " num_mini_batches num_ppo_epochs temperature lam missing_eos_penalty", "lora": _LORA},
    "grpo": {"training": f"{_TRAINING} gradient_accumulation_steps max_completion_length"
             " num_generations generation_batch_size", "lora": _LORA,
             "canary": "bias_strength max_response_chars mean_match_tolerance"
             " mean_match_min_samples warmup_samples calibration_lr"},
}  # fmt: skip


def _settings(name: str, config: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers that a training file sets and the program reads."""

    def number(value: Any) -> Any:
        return float(value) if isinstance(value, str) else value

    return {
        part: {key: number(config[part][key]) for key in keys.split()}
        for part, keys in _READ[name].items()
    }


# MBA, RAG-MIA and S2MIA, by the re-implementation that another paper's authors published.


def _mia(_: Path) -> dict[str, Rows]:
    direct = importlib.import_module("mia_utils.direct_query")
    s2, mba = importlib.import_module("mia_utils.s2"), importlib.import_module("mia_utils.mba")
    found: dict[str, Rows] = {}
    config = types.SimpleNamespace(attack_config=types.SimpleNamespace(
        attack_method="x", name="run", proxy_lm_mba="x"))  # fmt: skip
    rng = random.Random(3)
    texts = [" ".join(_texts(rng, 14, 28)) for _ in range(20)]
    results = Path("results/target_docs")
    results.mkdir(parents=True, exist_ok=True)

    def questions(kind: Any) -> list[str]:
        attack = kind(config, target_docs={str(n): {"text": t} for n, t in enumerate(texts)})
        with contextlib.redirect_stderr(io.StringIO()):
            attack.generate_questions()
        return [one["questions"][0] for one in attack.target_docs.values()]

    found["rag-mia question"] = list(zip(texts, questions(direct.Direct_Query_Attacker),
                                         strict=True))  # fmt: skip
    found["s2mia question"] = list(zip(texts, questions(s2.S2_Attacker), strict=True))
    said = [" ".join(rng.sample(text.split(), rng.randint(4, 10))) if n % 3 else
            " ".join(text.split()[5:14]) for n, text in enumerate(texts)]  # fmt: skip
    stored = {str(n): {"text": text, "llm_responses": [answer]}
              for n, (text, answer) in enumerate(zip(texts, said, strict=True))}  # fmt: skip
    (results / "run.json").write_text(json.dumps(stored))
    attack = s2.S2_Attacker(config, target_docs=stored)
    with contextlib.redirect_stdout(io.StringIO()):
        attack.calculate_score()
    found["s2mia bleu"] = [
        ({"text": one["text"], "answer": one["llm_responses"][0]}, round(one["bleu_score"], 9))
        for one in attack.target_docs.values()
    ]
    found["rag-mia answer"] = []
    for answer in ("Yes", "No.", "yes, it does", "NO", "I cannot say", "", "Yesterday", "It does: yes",  # noqa: E501
                   "not at all", "no, yes", "Yes!", "**Yes**", "Nope", "ja", "The answer is No", "y",  # noqa: E501
                   "unknown", "Yes and no", "No context is given. Yes?", "'Yes'", "Certainly.",
                   "I think yes", "Yes, no doubt", "- Yes", "The text says: no"):  # fmt: skip
        found["rag-mia answer"].append((answer, _yes(direct, config, results, answer)))
    found["mba question"], found["mba masks"] = [], []

    class Masker(mba.MBA_Attacker):  # type: ignore[misc, name-defined]
        def __init__(self, masks: int) -> None:
            super().__init__(config, load_misc_models=False, num_masks=masks)
            self.proxy_lm_tokenizer = lambda word: {"input_ids": [word, ""]}

        def compute_rank(self, _: str, token: str) -> int:
            return rank(token)

    for text in texts:
        masker = Masker(4)
        masker.target_docs = {"0": {"text": text}}
        with contextlib.redirect_stderr(io.StringIO()):
            masker.generate_questions()
        asked = masker.target_docs["0"]
        found["mba question"].append((asked["questions"][0].split("\n\n")[1],
                                      asked["questions"][0]))  # fmt: skip
        words = {str(n): words[-1] for n, words in asked["answers"].items()}
        found["mba masks"].append(({"text": text, "masks": 4}, list(words.values())))
    found["mba score"] = []
    for reply in (
        "[Mask_1]: amber\n[Mask_2]: basin", "[MASK_1]: Amber\n[MASK_2]: cedar", "Mask_1: amber",
        "[Mask_1]: amber.\n[Mask_2]: 'basin'", "1. amber\n2. basin", "amber, basin", "I do not know.",  # noqa: E501
        "[Mask_1]: the amber\n[Mask_2]: basin", "[Mask_1] amber\n[Mask_2] basin", "",
        "[Mask_1]: cedar\n[Mask_1]: amber", "**[Mask_1]:** amber\n**[Mask_2]:** basin",
        "[Mask 1]: amber", "[Mask_2]: basin\n[Mask_1]: amber", "[mask_1]: AMBER\n[mask_2]: BASIN",
        "[Mask_1]: amber [Mask_2]: basin", "[Mask_1]: amber (a colour)", "[Mask_3]: amber",
        '{"Mask_1": "amber", "Mask_2": "basin"}', "[Mask_1]: unknown\n[Mask_2]: basin",
        "[Mask_1]: amber's", "[Mask_1]:amber;[Mask_2]:basin", "[MASK1]: amber",
        "Here they are: [Mask_1]: amber, [Mask_2]: basin",
        "[Mask_1]: amber\n\n[Mask_2]: basin\n\nDone.",
    ):  # fmt: skip
        found["mba score"].append((reply, _hits(Masker, results, reply)))
    return found


def rank(word: str) -> int:
    """Return a rank that follows from a word alone, in place of a language model's."""
    return sum(ord(char) * 31**n for n, char in enumerate(word)) % 9973


def _yes(direct: Any, config: Any, results: Path, answer: str) -> str:
    """Return whether the program reads Yes: it prints the share of right answers for a member."""
    stored = {"0": {"mem": "yes", "llm_responses": [answer]}}
    (results / "run.json").write_text(json.dumps(stored))
    attack = direct.Direct_Query_Attacker(config, target_docs=stored)
    page = io.StringIO()
    with contextlib.redirect_stdout(page):
        attack.calculate_score()
    return "yes" if "100.00%" in page.getvalue() else "no"


def _hits(masker: Callable[[int], Any], results: Path, reply: str) -> float:
    """Return the share of two masks, ``amber`` and ``basin``, that a reply fills."""
    stored = {"0": {"answers": {"1": ["amber"], "2": ["basin"]}, "llm_responses": [reply]}}
    (results / "run.json").write_text(json.dumps(stored))
    attack = masker(2)
    attack.target_docs = stored
    with contextlib.redirect_stdout(io.StringIO()):
        attack.calculate_score()
    return attack.target_docs["0"]["accuracy"] / 100


# S-RAG: halves, probes, what stands before each, probabilities, bins.


class _Rows(list[Any]):
    """A file of jsonlines."""

    write = list.append


class _Ids(dict[str, Any]):
    """What a tokenizer returns; it needs no device."""

    def to(self, _: Any) -> _Ids:
        return self


def _srag(_: Path) -> dict[str, Rows]:
    import numpy as np

    program: Any = importlib.import_module("Audit")
    files: dict[str, _Rows] = {}
    program.jsonlines.open = lambda path, **_: contextlib.nullcontext(
        files.setdefault(Path(path).name, _Rows())
    )
    program.tqdm = lambda items, **_: items
    program.WordNetLemmatizer = lambda: types.SimpleNamespace(lemmatize=str)
    rng = random.Random(4)
    found: dict[str, Rows] = {}
    short = [word for word in _WORDS if len(word) == 5]
    even = [" ".join(rng.sample(short, n))
            for n in (8, 8, 10, 10, 12, 14, 14, 16, 18, 20, 20, 22, 24, 24, 26, 28, 30, 32, 32, 34)]  # fmt: skip  # noqa: E501
    found["probes"] = [({"text": text}, _probed(program, files, np, text)) for text in even]
    texts = even[:8] + [" ".join(_texts(rng, 8, 20)) for _ in range(12)]
    found["halves"] = [(text, program.preprocess([text])[1][0].lstrip()) for text in texts]
    found["before"] = []
    for number in range(20):
        words = rng.sample(_WORDS, 12)
        places = [5, 8, 9]
        if number % 4 == 1:  # between two probes, a word that contains the second one
            words[6], words[8] = "information", "form"
        if number % 4 == 3:
            words[6] = words[9]
        given = {"words": words, "places": places}
        found["before"].append(
            (given, program.mask_text(" ".join(words), [words[n] for n in places]))
        )
    found["features"] = []
    for m in (5, 10, 15, 20):
        for n in range(5):
            values = [round(rng.random(), 3) for _ in range(6)] + [0.01] * n
            values += [[1.0, 0.0], [0.2], [0.3, 0.7], [], [1.0, 1.0]][n]
            found["features"].append(({"probabilities": values, "m": m},
                                      _binned(program, files, values, m)))  # fmt: skip
    tops = (
        ("amber", [["amber", 0.5]]), ("amber", [[" Amber", 0.5], ["ocean", 0.2]]),
        ("amber", [["ocean", 0.5], ["amber", 0.2]]), ("amber", [["ocean", 0.5]]),
        ("amber", [["amb", 0.5]]), ("amber", [["Am", 0.4], ["amber", 0.2]]),
        ("amber", [["\n", 0.5], ["amber", 0.2]]), ("amber", [[" ", 0.7], ["ocean", 0.1]]),
        ("amber", [["ambers", 0.5]]), ("amber", [["amber,", 0.5]]), ("an", [["and", 0.5]]),
        ("a", [["amber", 0.6]]), ("amber", [["a", 0.3]]), ("amber", [['"', 0.5], ["amber", 0.3]]),
        ("Amber", [["amber", 0.9]]), ("amber", [["AMBER", 0.4], ["amber", 0.3]]),
        ("amber", [[" amber", 0.4], ["amber", 0.3]]), ("heart-felt", [["heart", 0.8]]),
        ("1945", [["19", 0.8]]), ("amber", [["The", 0.5], [" amber", 0.4]]),
    )  # fmt: skip
    found["chosen"] = [({"word": word, "top": top}, _chosen(program, files, word, top))
                       for word, top in tops]  # fmt: skip
    return found


def _probed(program: Any, files: dict[str, _Rows], np: Any, text: str) -> list[str]:
    """Return the words that a model whose ranks follow from the words finds hardest."""
    vocabulary = ["", *text.split()]

    def encode(part: str, **_: Any) -> _Ids:
        return _Ids(input_ids=[[vocabulary.index(word) for word in part.split()]])

    encode.decode = lambda ids: f" {vocabulary[ids[0]]}"  # type: ignore[attr-defined]
    chances = np.array([1 / (1 + rank(word)) for word in vocabulary])
    program.torch.no_grad = contextlib.nullcontext
    program.torch.softmax = lambda logits, **_: logits
    model = MagicMock(return_value=types.SimpleNamespace(logits=chances[None, None]))
    program.transformers.pipeline = lambda *_, **__: types.SimpleNamespace(
        model=model, tokenizer=encode
    )
    program.get_dataset = lambda *_: ([], [], [text])
    with contextlib.redirect_stdout(io.StringIO()):
        program.generate_mask_token("", "", "", "", "", "masks", 4)
    return [word.strip() for word in files.pop("masks")[0]["token"]]


def _binned(program: Any, files: dict[str, _Rows], values: list[float], m: int) -> list[int]:
    """Return what its classifier is trained on, for one document of two."""
    files["features"] = _Rows([{"probability": values}] * 2)
    program.pd.DataFrame.reset_mock()
    program.train_model("", "", "features", m)
    columns = program.pd.DataFrame.call_args[0][0]
    return [int(columns[f"feature{n + 1}"][0]) for n in range(m)]


def _chosen(program: Any, files: dict[str, _Rows], word: str, top: list[Any]) -> float:
    """Return the probability that is taken from five alternatives."""
    program.get_dataset = lambda *_: ([], [], [f"{'x' * len(word)}{word}"])
    program.get_top_tokens = lambda *_, **__: [tuple(one) for one in top]
    files |= {"prompts": _Rows([{"text": "?"}]), "masks": _Rows([{"token": [word]}])}
    files.pop("out", None)
    with contextlib.redirect_stdout(io.StringIO()):
        program.generate_feature("", "prompts", "", "gpt-4o-mini", "", "", "masks", "", "out")
    (value,) = files["out"][0]["probability"]
    return float(value)


PROGRAMS: dict[str, tuple[str, Callable[[Path], dict[str, Rows]]]] = {
    "sage": ("phycholosogy/RAG-SAGE", _sage),
    "canary": ("CRChenND/rag-rl-audit", _canary),
    "mia": ("ali7naseh/RAG_MIA", _mia),
    "s-rag": ("zzrhh/S-RAG", _srag),
}
_LIBRARIES = "spacy transformers torch datasets ragas ragas.metrics src.retrievers src.prompts"
_MOCKED = {
    "sage": _LIBRARIES, "canary": "", "mia": _LIBRARIES,
    "s-rag": "transformers torch jsonlines chardet chardet.universaldetector pandas tiktoken"
    " autogluon autogluon.tabular langchain langchain.text_splitter langchain_core"
    " langchain_core.prompts langchain_community langchain_community.document_loaders"
    " langchain_community.embeddings langchain_community.vectorstores",
}  # fmt: skip


def collect(checkout: Path) -> dict[str, Any]:
    """Run every program that is in a folder; return what the golden file holds."""
    found: dict[str, Any] = {}
    for key, (repository, run) in PROGRAMS.items():
        folder = (checkout / repository.rpartition("/")[2]).resolve()
        if not folder.is_dir():
            raise SystemExit(f"{folder} is not there: clone {repository} into it.")
        commit = subprocess.run(
            ["git", "-C", folder, "rev-parse", "HEAD"],  # noqa: S607
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        # Libraries that call services or load models are stand-ins: no function here needs them.
        stand_ins = {name: MagicMock() for name in _MOCKED[key].split()}
        before, here = dict(sys.modules), Path.cwd()
        sys.modules.update(stand_ins)
        sys.path.insert(0, str(folder))
        if "torch" in stand_ins:
            stand_ins["torch"].no_grad = lambda: lambda call: call
        with tempfile.TemporaryDirectory() as scratch, _stop_words():
            os.chdir(scratch)
            functions = run(folder if key == "canary" else Path(scratch))
            os.chdir(here)
        sys.path.remove(str(folder))
        for name in set(sys.modules) - set(before) | set(stand_ins):
            if name.partition(".")[0] in {"src", "mia_utils", *stand_ins}:
                sys.modules.pop(name, None)
        found[key] = {"repository": repository, "commit": commit, "functions": functions}
    return found


@contextlib.contextmanager
def _stop_words() -> Iterator[None]:
    """NLTK's list is a download; no word of the inputs is in it."""
    import nltk
    from nltk.corpus import stopwords

    nltk.download = lambda *_: True
    stopwords.words = lambda *_: ["the", "of", "and"]
    yield


def write(checkout: Path) -> None:
    """Write the golden file, one input a line."""
    programs = collect(checkout)
    parts = []
    for key, program in programs.items():
        rows = ",\n".join(
            f"  {json.dumps(name)}: [\n"
            + ",\n".join(f"   {json.dumps(row, ensure_ascii=False)}" for row in function)
            + "\n  ]"
            for name, function in program["functions"].items()
        )
        head = json.dumps({k: program[k] for k in ("repository", "commit")})[1:-1]
        parts.append(f' {json.dumps(key)}: {{{head}, "functions": {{\n{rows}\n }}}}')
    GOLDEN.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def table() -> str:
    """Return the rows of PAPERS.md: functions, inputs, agreements, and named differences."""
    programs = json.loads(GOLDEN.read_text(encoding="utf-8"))
    named = tomllib.loads(NAMED.read_text(encoding="utf-8"))
    lines = [
        "| functions of the program | here | equal, of inputs | named differences |",
        "|---|---|---|---|",
    ]
    for key, program in programs.items():
        equal: dict[str, list[str]] = {}
        rows = []
        for name, inputs in program["functions"].items():
            entry, count = named[key][name], len(inputs)
            differences = entry.get("differs", [])
            if not differences:
                equal.setdefault(entry["here"], []).append(f"{name} {count}")
                continue
            apart = {place for one in differences for place in one["inputs"]}
            reasons = "; ".join(
                f"{one['what']} ({len(one['inputs'])}): {one['why']}" for one in differences
            )
            cells = (f"{key}: {name}", f"`{entry['here']}`", f"{count - len(apart)} of {count}")
            rows.append(f"| {' | '.join(cells)} | {reasons} |")
        lines += [
            f"| {key}: {', '.join(names)} | `{here}` | all | - |" for here, names in equal.items()
        ]
        lines += rows
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=("table",))
    parser.add_argument("--checkout", type=Path, help="folder of the programs' repositories")
    options = parser.parse_args()
    if options.what == "table":
        print(table())
    elif options.checkout:
        write(options.checkout)
    else:
        parser.error("--checkout DIR, or table")
