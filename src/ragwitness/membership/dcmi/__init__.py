"""DCMI (2025): ask about the document and about a copy in which some words are turned round."""

from ragwitness.membership.dcmi.config import DcmiConfig
from ragwitness.membership.dcmi.perturb import Perturbed, perturb
from ragwitness.membership.dcmi.probe import Dcmi

__all__ = ["Dcmi", "DcmiConfig", "Perturbed", "perturb"]
