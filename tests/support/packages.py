"""Installed packages made up in a folder: modules, metadata and entry points."""

from __future__ import annotations

from pathlib import Path

import pytest


def install(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    name: str,
    code: str,
    **entries: dict[str, str],
) -> None:
    """Put a package into ``folder`` and on the path.

    Args:
        monkeypatch: Takes it off again.
        folder: Where it is written.
        name: Of the package and its one module.
        code: Source of the module.
        entries: By kind (``targets``, ``audits``, ``defenses``): name to object.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(code)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines: list[str] = []
    for kind, found in entries.items():
        lines += [f"[ragwitness.{kind}]", *(f"{key} = {value}" for key, value in found.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(str(folder))
