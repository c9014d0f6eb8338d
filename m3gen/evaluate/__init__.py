"""Judging candidates: what a stage found out about one, and whether its outputs are right."""

from m3gen.evaluate.evaluation import Evaluation, Stage
from m3gen.evaluate.verification import CaseResult, Verification

__all__ = ["CaseResult", "Evaluation", "Stage", "Verification"]
