"""One process of several; started by :mod:`ragwitness.service.workers`."""

from ragwitness.service.workers import work

__all__: list[str] = []

if __name__ == "__main__":
    work()
