"""Runs llama-server's own tests against `medusa serve`: `python -m tests.tools.llama_server_tests`.

They come from llama.cpp's sources and talk to a server that runs already, which they call external.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from tests.support.server.served import ServedProcess
from tests.tools import llama_cpp_files, real_models

FILES = ("chat_completion", "compat_anthropic", "compat_oai_responses", "template", "tokenize")
_CONTEXT = "256"  # as their own server has


def run(folder: Path) -> dict[str, str]:
    """Run the tests of `FILES`.

    Args:
        folder: For copies and reports; must be empty.

    Returns:
        By file and test, such as `tokenize::test_tokenize_with_bos[x]`: what failed; empty for
        tests that passed.

    Raises:
        CalledProcessError: The sources couldn't be fetched.
    """
    sources = folder / "tests"
    shutil.copytree(llama_cpp_files.fetch(llama_cpp_files.SERVER_TESTS), sources)
    (sources / "wget.py").write_text("")  # imported for downloads of models, which aren't wanted
    report = folder / "report.xml"
    model = real_models.find("smollm2")
    served = ServedProcess(folder / "served", "--model", str(model), "--context", _CONTEXT)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    command += ["-m", "not slow", "--junitxml", str(report)]
    command += [f"unit/test_{name}.py" for name in FILES]
    environment = os.environ | {"DEBUG_EXTERNAL": "1", "PORT": str(served.port)}
    try:
        subprocess.run(command, cwd=sources, env=environment, check=False, stdout=sys.stderr)
    finally:
        served.close()
    return _outcomes(report)


def _outcomes(report: Path) -> dict[str, str]:
    found = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        if case.find("skipped") is not None:
            continue
        problem = case.find("failure")
        problem = case.find("error") if problem is None else problem
        name = case.get("classname", "").removeprefix("unit.test_")
        words = "" if problem is None else problem.get("message", "failed")
        found[f"{name}::{case.get('name')}"] = words
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        for test, problem in run(Path(scratch)).items():
            print(test, problem[:100] if problem else "passed")
