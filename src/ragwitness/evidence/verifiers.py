"""Which kind of sealed file a file is, and what verifies it."""

from __future__ import annotations

from ragwitness.attest.archive import Archive, listing
from ragwitness.core.errors import InputError, VerificationError
from ragwitness.core.registry import Listing, Registry

SEALED = Registry(
    "sealed file",
    {
        "bundle.json": Listing(
            "ragwitness.attest.verifier:verify",
            "the bundle of an audit window, by ragwitness attest prove",
        ),
        "pack.json": Listing(
            "ragwitness.evidence.verifier:verify_pack", "an evidence pack, by ragwitness seal"
        ),
    },
)
"""The verifier of each kind of sealed file, by the file in its archive that lists the others. All
kinds are archives of one form (``attest.bundle``)."""


def sealed_kind(data: Archive) -> str:
    """Return the kind of a sealed file, by which :data:`SEALED` has what verifies it.

    A file that is no sealed archive goes to the verifier whose list it names, which says what is
    wrong with it.

    Raises:
        InputError: It is an archive in our form, of a kind that is not known here.
    """
    try:
        names = [file.name for file in listing(data)]
    except VerificationError:
        return "pack.json" if data.find(b"pack.json") >= 0 else "bundle.json"
    match = next((kind for kind in SEALED if kind in names), None)
    if match is None:
        from ragwitness.attest.bundle import member_limit

        if any(map(member_limit, names)):
            return "bundle.json"
        kinds = "; ".join(f"{kind} ({listed.summary})" for kind, listed in SEALED.items())
        raise InputError(
            f"This is no kind of sealed file that is known here: it holds {names[0]!r}, and none of"
            f" {kinds}.",
            "Install the version of ragwitness that wrote it, or a newer one.",
        )
    return match


# The kinds of runs that a pack may hold.
