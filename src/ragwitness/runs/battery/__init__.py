"""Honest evaluation of many audits on one corpus."""

from ragwitness.runs.battery.measure import Cost, Measured
from ragwitness.runs.battery.run import Battery, BatteryPlan, run_battery

__all__ = ["Battery", "BatteryPlan", "Cost", "Measured", "run_battery"]
