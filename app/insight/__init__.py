"""Panels that show how answers were decoded: tree, steps, equilibrium, comparison."""
