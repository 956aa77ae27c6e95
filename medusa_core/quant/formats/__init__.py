"""One file per weight format; a module that exports `SPEC` is registered."""
