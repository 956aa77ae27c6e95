"""The step of a CPU, compiled: C sources, how they are built, and what calls them.

The libraries lie built in `resources/native`, so that nobody needs a compiler. Where none of them
fits the machine, everything runs without.
"""
