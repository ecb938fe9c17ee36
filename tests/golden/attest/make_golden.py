"""Make the golden window again: ``python -m tests.golden.attest.make_golden`` from the root.

Only for a new version of a format, beside the old files: what is here must verify for ever.
"""

import tempfile
from pathlib import Path

from tests.support.attested import POLICY, make_audited, make_setup_for

HERE = Path(__file__).parent


def main():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        made = make_audited(root, make_setup_for(POLICY, root / "setup"), 3)
        (HERE / "window-v1.zip").write_bytes(made.bundle)
        (HERE / "trust-pinned.json").write_bytes(made.trust.encode())
        (HERE / "receipt-v1.json").write_bytes(made.receipts[4])
        (HERE / "close-v1.checkpoint").write_bytes(made.files["log/close.checkpoint"])


if __name__ == "__main__":
    main()
