"""The public surface is complete, sorted, small and lazy."""

import subprocess
import sys

import ragwitness


def test_every_public_name_can_be_had() -> None:
    for name in ragwitness.__all__:
        assert getattr(ragwitness, name) is not None


def test_names_are_sorted_few_and_have_a_home() -> None:
    assert ragwitness.__all__ == sorted(ragwitness.__all__)
    assert len(ragwitness.__all__) <= 60
    assert set(ragwitness.__all__) == set(ragwitness._HOMES)


def test_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(ragwitness, "no_such_name")


def test_help_loads_nothing_heavy_and_is_quick() -> None:
    code = (
        "import sys; sys.argv=['ragwitness','--help']\n"
        "from ragwitness.cli.main import run\n"
        "try: run()\n"
        "except SystemExit: pass\n"
        "heavy={'numpy','scipy','sklearn','torch','httpx2','tokenizers','starlette','pydantic'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip().endswith("[]")
