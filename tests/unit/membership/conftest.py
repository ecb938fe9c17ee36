"""What tests of whole audits share."""

from collections.abc import Iterator

import pytest

from ragwitness.membership import shadow


@pytest.fixture(scope="module", autouse=True)
def small_forests() -> Iterator[None]:
    """Small classifiers: which family reads best is tested where classifiers are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shadow, "_TREES", 8)
        yield
