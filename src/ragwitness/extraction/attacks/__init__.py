"""The extraction attacks by name."""

from __future__ import annotations

from ragwitness.extraction.attacks.base import Ask, Attack, Attacking, Limits
from ragwitness.extraction.attacks.benign import Benign, BenignConfig
from ragwitness.extraction.attacks.composite import Composite, CompositeConfig, Pide, PideConfig
from ragwitness.extraction.attacks.crawler import Crawler, CrawlerConfig
from ragwitness.extraction.attacks.pirates import Pirates, PiratesConfig
from ragwitness.extraction.attacks.thief import Thief, ThiefConfig

__all__ = [
    "Ask",
    "Attack",
    "Attacking",
    "Benign",
    "BenignConfig",
    "Composite",
    "CompositeConfig",
    "Crawler",
    "CrawlerConfig",
    "Limits",
    "Pide",
    "PideConfig",
    "Pirates",
    "PiratesConfig",
    "Thief",
    "ThiefConfig",
]
