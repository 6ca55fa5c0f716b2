"""Immovable obstacles: shapes, random fields that a robot can get through, and the grid that finds them quickly."""
