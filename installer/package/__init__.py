"""Packages to install from: a module here that exports `SPEC` is a format of `package`."""
