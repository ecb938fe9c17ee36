from __future__ import annotations

import threading

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from ragwitness.core.threads import one_blas_thread


def _threads() -> set[int]:
    """Threads of numpy's own library; another test may have brought others, such as scipy's."""
    return {
        one["num_threads"]
        for one in threadpool_info()
        if one["user_api"] == "blas" and "numpy" in one["filepath"]
    }


def test_one_thread_inside_and_the_former_number_after() -> None:
    np.ones((2, 2)) @ np.ones((2, 2))
    with threadpool_limits(limits=2, user_api="blas"):
        before = _threads()
        with one_blas_thread():
            assert _threads() == {1}
            with one_blas_thread():
                assert _threads() == {1}
            assert _threads() == {1}
        assert _threads() == before


def test_the_last_to_leave_restores() -> None:
    entered, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with one_blas_thread():
            entered.set()
            leave.wait(10)

    with threadpool_limits(limits=2, user_api="blas"):
        before = _threads()
        other = threading.Thread(target=stay)
        with one_blas_thread():
            other.start()
            entered.wait(10)
        assert _threads() == {1}, "somebody is still inside"
        leave.set()
        other.join()
        assert _threads() == before


def test_any_thread_may_enter_whoever_set_the_number_before() -> None:
    """threadpoolctl ignores all threads but the last that set or restored the number."""
    found = []

    def look() -> None:
        with one_blas_thread():
            found.append(_threads())

    with threadpool_limits(limits=2, user_api="blas"):
        with one_blas_thread():
            pass
        before = _threads()
        for _ in range(2):
            other = threading.Thread(target=look)
            other.start()
            other.join()
        assert found == [{1}, {1}]
        assert _threads() == before
