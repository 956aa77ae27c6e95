"""The compiled CPU step: C sources, build, bindings. `resources/native` has it built."""
