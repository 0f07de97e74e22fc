"""Exact arithmetic, units and dates, so that no model has to reckon.

`expression.py` reads and reckons, `units.py` converts, and `exact.py` says
what comes out. All of them are pure.
"""

from caal_node.toolsets.calculator.toolset import Calculator, CalculatorOptions

__all__ = ["Calculator", "CalculatorOptions"]
