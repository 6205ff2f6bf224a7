#!/usr/bin/env python3
"""Runs the commands of README.md and docs/, and compares what they print: docs_test.py TRAINCTL [--write] [PAGE...]

In a ```console block a line that begins with "$ " is a command, which continues after a line that ends in a backslash.
The lines after it are its standard output, or its standard error if standard output is empty. Numbers, hashes and
spaces are not compared, and a line "..." matches any lines. The blocks of a page run one after the other in one folder,
which has the repository's configs and scripts. The commands in STAND_INS build, which has its own test: another command
runs instead, and must print the same. --write replaces the outputs in the pages by the current ones, except for outputs
with a "..." line."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
STAND_INS = {"./scripts/quickstart": "build/release/trainctl run configs/quickstart.yaml", "./scripts/test": "true"}


def blocks(text):
    """Begin and end of the content of each console block."""
    return [match.span(1) for match in re.finditer(r"^```console\n(.*?)^```$", text, re.M | re.S)]


def commands(block):
    """Pairs of the lines of a command and the lines of its output."""
    found = []
    continues = False
    for line in block.splitlines():
        if continues or line.startswith("$ "):
            if continues:
                found[-1][0].append(line)
            else:
                found.append(([line], []))
            continues = line.endswith("\\")
        elif found:
            found[-1][1].append(line)
    return found


def comparable(line):
    line = re.sub(r"\b[0-9a-f]{16,}\b", "#", line)
    line = re.sub(r"about |(?<![A-Za-z_\d])[-+]?\d[\d,.:/]*(e[-+]?\d+)?", "#", line)
    line = re.sub(r"\b(us|ms|s|min|h|d|kB|MB|GB|bytes)\b", "#", line)
    return re.sub(r"[#\s]+", " ", line).strip()


def agrees(expected, printed):
    """Whether the printed lines are the expected ones, where "..." matches any lines."""
    if not expected:
        return not printed
    if expected[0] == "...":
        return any(agrees(expected[1:], printed[i:]) for i in range(len(printed) + 1))
    return bool(printed) and comparable(expected[0]) == comparable(printed[0]) and agrees(expected[1:], printed[1:])


def run(command, folder, trainctl):
    environment = {**os.environ, "PATH": f"{trainctl.parent}:{os.environ['PATH']}", "TERM": "dumb"}
    done = subprocess.run(["bash", "-c", "set -o pipefail\n" + command], cwd=folder, env=environment, text=True, timeout=500,
                          stdin=subprocess.DEVNULL, capture_output=True)
    return done.returncode, [line.rstrip() for line in (done.stdout or done.stderr).splitlines()], done.stderr


def check(page, trainctl, write):
    text = page.read_text()
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for part in ("configs", "scripts"):
            (folder / part).symlink_to(ROOT / part)
        (folder / "build").mkdir()
        (folder / "build/release").symlink_to(trainctl.parent)
        shift = 0
        for begin, end in blocks(text):
            block = text[begin + shift:end + shift]
            written = ""
            for lines, expected in commands(block):
                command = "\n".join(lines).removeprefix("$ ")
                code, printed, errors = run(STAND_INS.get(command, command), folder, trainctl)
                given = re.search(r"# exit code (\d+)$", command)
                wanted = int(given[1]) if given else 0
                if code != wanted:
                    print(f"{page.name}: $ {command}\nends with {code}:\n{errors[-3000:]}")
                    failures += 1
                elif not write and expected and not agrees(expected, printed):
                    print(f"{page.name}: $ {command}\nprints:\n" + "\n".join(printed))
                    failures += 1
                keep = "..." in expected or not write
                written += "\n".join([*lines, *(expected if keep else printed)]) + "\n"
            if write:
                text = text[:begin + shift] + written + text[end + shift:]
                shift += len(written) - len(block)
    if write:
        page.write_text(text)
    return failures


arguments = [argument for argument in sys.argv[2:] if argument != "--write"]
pages = [pathlib.Path(page) for page in arguments] or [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
failed = sum(check(page, pathlib.Path(sys.argv[1]).resolve(), "--write" in sys.argv) for page in pages)
print(f"{len(pages)} pages, {failed} commands that differ from their page")
sys.exit(1 if failed else 0)
