"""Costs of rows, acceptance of drafts, and the policy that chooses tree sizes by both."""
