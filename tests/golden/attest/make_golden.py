"""Make the golden window again: ``python -m tests.golden.attest.make_golden`` from the root.

Only for a new version of a format, beside the old files: what is here must verify for ever.
"""

import tempfile
from pathlib import Path

from tests.support.attested import PINNED, POLICY, make_audited

HERE = Path(__file__).parent


def pinned(made):
    """The trust of an auditor who knows this policy and this embedder."""
    from dataclasses import replace

    from ragwitness.attest.commitments import CommittedEmbedder
    from ragwitness.attest.trust import Pins

    embedder = CommittedEmbedder.parse(made.files["embedder.json"])
    return replace(
        made.trust, pins=Pins(policy=POLICY.digest, embedder=embedder.digest, accounts=PINNED)
    )


def main():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        made = make_audited(root, 3)
        (HERE / "window-v3.zip").write_bytes(made.bundle)
        (HERE / "trust-v3.json").write_bytes(pinned(made).encode())
        (HERE / "receipt-v3.json").write_bytes(made.receipts[4])
        (HERE / "close-v3.checkpoint").write_bytes(made.files["log/close.checkpoint"])


if __name__ == "__main__":
    main()
