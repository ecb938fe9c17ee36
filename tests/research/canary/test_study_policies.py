"""A saved policy: what servers of transformers need to load it, sample from it, read prompts."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from research.canary.policies import load_base, one_thread, save_policy
from research.canary.worlds import Pretraining, toy_base


def test_a_saved_policy_is_read_back_and_samples(tmp_path: Path) -> None:
    one_thread()
    base = toy_base(Pretraining(width=16, layers=1, steps=2, batch=4))
    save_policy(base, base.model, tmp_path / "policy")
    again = load_base(str(tmp_path / "policy"))
    text = "In Avon there lived a fox. It was red all the year round."
    assert again.encode([again.asked("What colour was it?", text)]) == base.encode(
        [base.asked("What colour was it?", text)]
    )
    ids = torch.tensor(base.encode([text]))
    assert torch.equal(again.model(input_ids=ids).logits, base.model(input_ids=ids).logits)
    said = [{"role": "system", "content": "x"}, {"role": "user", "content": text}]
    assert again.tokenizer.apply_chat_template(said, tokenize=False) == text
    settings = again.model.generation_config
    assert (settings.do_sample, settings.temperature, settings.top_k) == (True, 1.0, 0)
    assert settings.suppress_tokens == [base.pad]
    assert base.tokenizer.chat_template is None  # the base itself is left as it was
    with pytest.raises(FileExistsError):
        save_policy(base, base.model, tmp_path / "policy")
