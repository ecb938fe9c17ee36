import hashlib
import hmac

import pytest

from ragwitness.service.principals import matches, new_key, split_key


def test_a_key_opens_its_own_account_alone() -> None:
    one, other = new_key(), new_key()
    key_id, secret = split_key(f"Bearer {one.text}")
    assert key_id == one.stored.key_id
    assert matches(secret, one.stored)
    assert not matches(secret, other.stored)
    assert not matches(secret, None)
    assert not matches("", None)


def test_what_is_stored_is_a_salted_hash() -> None:
    key = new_key()
    secret = key.text.split("_", 2)[2]
    assert key.stored.digest == hmac.new(key.stored.salt, secret.encode(), hashlib.sha256).digest()
    assert secret not in repr(key)
    assert len({new_key().text for _ in range(50)}) == 50


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Basic eA==", "Bearer rw_1_2", f"rw_{'0' * 16}_{'A' * 43}",
     f"Bearer rw_{'0' * 16}_{'A' * 44}", f"Bearer rw_{'G' * 16}_{'A' * 43}",
     f"Bearer rw_{'0' * 16}_{'A' * 42}\n"],
)  # fmt: skip
def test_what_is_no_key_has_no_account(header: str | None) -> None:
    assert split_key(header) == ("", "")


def test_the_scheme_has_no_case() -> None:
    key = new_key()
    assert split_key(f"bearer {key.text}")[0] == key.stored.key_id
