"""Drafters and their sources; a module that exports `SPEC` is a drafter that grows no trees."""
