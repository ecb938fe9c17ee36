"""Running meters of a tenant's index: what all its answers, to whomever, have spent so far."""

from ragwitness.privacy.odometer.documents import DocumentMeter
from ragwitness.privacy.odometer.spectral import Odometer
from ragwitness.privacy.odometer.terms import Terms

__all__ = ["DocumentMeter", "Odometer", "Terms"]
