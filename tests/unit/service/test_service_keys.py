import hashlib
import hmac

import pytest

from ragwitness.service.principals import new_key, split_key


def test_what_is_stored_is_a_salted_hash() -> None:
    text, stored = new_key()
    key_id, secret = split_key(f"Bearer {text}")
    assert key_id == stored["key_id"]
    assert stored["digest"] == hmac.new(stored["salt"], secret.encode(), hashlib.sha256).digest()
    assert secret not in repr(stored)
    assert len({new_key()[0] for _ in range(50)}) == 50


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Basic eA==", "Bearer rw_1_2", f"rw_{'0' * 16}_{'A' * 43}",
     f"Bearer rw_{'0' * 16}_{'A' * 44}", f"Bearer rw_{'G' * 16}_{'A' * 43}",
     f"Bearer rw_{'0' * 16}_{'A' * 42}\n"],
)  # fmt: skip
def test_what_is_no_key_has_no_account(header: str | None) -> None:
    assert split_key(header) == ("", "")


def test_the_scheme_has_no_case() -> None:
    text, stored = new_key()
    assert split_key(f"bearer {text}")[0] == stored["key_id"]
