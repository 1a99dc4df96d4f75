"""Plans: what an agent wants to do, kept beside what it remembers."""

from .notebook import PlanNotebook, plan_to_hint
from .plan import Plan, SubTask

__all__ = ["Plan", "PlanNotebook", "SubTask", "plan_to_hint"]
