"""The compiled CPU step: C sources, their build, and bindings.

The libraries lie built in `resources/native`, so that nobody needs a compiler. Where none of them
fits the machine, everything runs without.
"""
