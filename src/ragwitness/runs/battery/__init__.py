"""Honest evaluation of many audits on one corpus."""

from ragwitness.runs.battery.measure import Cost, Measured
from ragwitness.runs.battery.plan import Battery, BatteryPlan
from ragwitness.runs.battery.run import run_battery
from ragwitness.runs.battery.tables import Case, Table

__all__ = ["Battery", "BatteryPlan", "Case", "Cost", "Measured", "Table", "run_battery"]
