"""Times that others measured and published, as sums of m3gen's ops: what predictions are held against."""

from m3gen.evaluate.points.point import Choice, Order, Point, PointSet, Split, Term
from m3gen.evaluate.points.reading import read, shipped

__all__ = ["Choice", "Order", "Point", "PointSet", "Split", "Term", "read", "shipped"]
