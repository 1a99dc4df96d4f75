"""Plans of an agent, kept beside its memory."""

from .notebook import PlanNotebook, plan_to_hint
from .plan import Plan, SubTask

__all__ = ["Plan", "PlanNotebook", "SubTask", "plan_to_hint"]
