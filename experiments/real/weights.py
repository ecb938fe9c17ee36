"""Weights of real models: loaded from a GGUF file or a folder, converted, and carried in parts.

::

    python experiments/real/weights.py split MODEL.gguf PARTS            # files of at most 60 MB
    python experiments/real/weights.py join PARTS/MODEL.gguf MODEL.gguf  # checked by its hash
    python experiments/real/weights.py convert MODEL.gguf FOLDER         # bfloat16 safetensors

``split`` and ``join`` need Python alone, so that they run wherever weights are carried to.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PART_BYTES = 60_000_000
_READ = 1 << 20


def split(source: Path, folder: Path, size: int = PART_BYTES) -> list[Path]:
    """Cut a file into parts ``NAME.000``, ``NAME.001``, … beside ``NAME.sha256``.

    Args:
        source: The file.
        folder: Where the parts go; made where it is missing.
        size: Bytes of a part at most.

    Returns:
        The parts in order, the hash last.
    """
    folder.mkdir(parents=True, exist_ok=True)
    digest, parts = hashlib.sha256(), list[Path]()
    with source.open("rb") as whole:
        while data := whole.read(size):
            digest.update(data)
            parts.append(folder / f"{source.name}.{len(parts):03d}")
            parts[-1].write_bytes(data)
    parts.append(folder / f"{source.name}.sha256")
    parts[-1].write_text(f"{digest.hexdigest()} {len(parts) - 1}\n")
    return parts


def join(parts: Path, target: Path) -> None:
    """Put the parts of a file together; the file appears whole or not at all.

    Args:
        parts: Name of the parts without their numbers, such as ``parts/model.gguf``.
        target: The file to write.

    Raises:
        SystemExit: A part is missing, or the whole is not what was cut.
    """
    wanted, count = parts.with_name(f"{parts.name}.sha256").read_text().split()
    pieces = [parts.with_name(f"{parts.name}.{place:03d}") for place in range(int(count))]
    if missing := [one.name for one in pieces if not one.exists()]:
        raise SystemExit(f"{len(missing)} of {count} parts are missing: {', '.join(missing)}")
    digest, growing = hashlib.sha256(), target.with_name(f"{target.name}.growing")
    with growing.open("wb") as whole:
        for data in _blocks(pieces):
            digest.update(data)
            whole.write(data)
    if digest.hexdigest() != wanted:
        growing.unlink()
        raise SystemExit(f"{parts} joined has another hash than the file that was cut: carry again")
    growing.replace(target)


def _blocks(files: list[Path]) -> Iterator[bytes]:
    for path in files:
        with path.open("rb") as part:
            while data := part.read(_READ):
                yield data


def load(source: Path, device: str = "cpu") -> tuple[Any, Any]:
    """Load a chat model in bfloat16.

    Args:
        source: A GGUF file, whose weights are dequantised, or a folder of transformers.
        device: Of torch.

    Returns:
        The model, ready to answer, and its tokenizer.
    """
    import torch
    import transformers

    options: dict[str, Any] = {}
    if source.suffix == ".gguf":
        options["gguf_file"] = source.name
    folder = str(source.parent if options else source)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **options)
    # Releases that can leave weights packed are told not to: those kernels compute in float32.
    if options and hasattr(transformers, "GgufConfig"):
        options["quantization_config"] = transformers.GgufConfig(dequantize=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.bfloat16, **options
    )
    return model.eval().to(device), tokenizer


def convert(source: Path, folder: Path) -> None:
    """Write a GGUF file's model as a folder of transformers, which loads in seconds.

    A model from a GGUF file refuses to be saved, so its weights are put into a plain one.

    Args:
        source: The GGUF file.
        folder: The folder to write.
    """
    import torch

    model, tokenizer = load(source)
    config = model.config
    if hasattr(config, "quantization_config"):
        delattr(config, "quantization_config")
    plain = type(model)(config).to(torch.bfloat16)
    plain.load_state_dict(model.state_dict())
    plain.generation_config = model.generation_config
    plain.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def main() -> None:
    """Run one of the three commands."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("command", choices=("split", "join", "convert"))
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    given = parser.parse_args()
    {"split": split, "join": join, "convert": convert}[given.command](given.source, given.target)


if __name__ == "__main__":
    main()
