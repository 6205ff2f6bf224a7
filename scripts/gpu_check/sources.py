"""Computes a hash of the sources that a row's result depends on, without comments, in a checkout, at a commit or from a bundle's file."""
import fnmatch
import functools
import hashlib
import json
import pathlib
import re
import subprocess

from .places import BUNDLE, SHARE

BUNDLED = "gpu-check-sources.json"  # in a bundle's share/trainctl: the hash of each row

STRINGS = r'"(?:\\.|[^"\\\n])*"'
# Each expression matches strings and comments. A string stays, and a comment is removed.
CURLY = re.compile(r'(R"(\w*)\(.*?\)\2"|' + STRINGS + r"|'(?:\\[^'\n]*|[^'\\\n])')|//[^\n]*|/\*.*?\*/", re.S)
HASH = re.compile("(" + STRINGS + r"|'(?:\\.|[^'\\\n])*')|(?:^|(?<=\s))#[^\n]*", re.M)
DOCSTRING = re.compile(r'(\A|:[ \t]*\n)\s*"""(?:(?!""").)*"""', re.S)
CURLY_ENDS, HASH_ENDS = (".cpp", ".h", ".cu", ".c"), (".py", ".yaml", ".cmake", "CMakeLists.txt")


def kept(match):
    return match.group(1) or " "


def meaning(path, data):
    """Returns the bytes of a file that can change a result: no comments, no docstrings, no empty lines. The line breaks of C++ are also
    left out, since a formatter sets them."""
    if path.endswith(CURLY_ENDS):
        return " ".join(CURLY.sub(kept, data.decode("utf-8", "replace")).split()).encode()
    if path.endswith(HASH_ENDS):
        text = data.decode("utf-8", "replace")
        if path.endswith(".py"):
            text = DOCSTRING.sub(lambda match: match.group(1), text)
        lines = [line.rstrip() for line in HASH.sub(kept, text).splitlines()]
        return "\n".join(line for line in lines if line).encode()
    return data


def selects(patterns, path):
    """Says whether a pattern matches the path and no pattern after a "!" does. A "*" also matches "/"."""
    if not any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns if not pattern.startswith("!")):
        return False
    return not any(fnmatch.fnmatchcase(path, pattern[1:]) for pattern in patterns if pattern.startswith("!"))


class Tree:
    """The files of a checkout."""

    def __init__(self, root=SHARE):
        self.root = pathlib.Path(root)

    @functools.lru_cache(maxsize=None)
    def paths(self, folder):
        start = self.root / folder
        files = [start] if start.is_file() else start.rglob("*")
        names = (file.relative_to(self.root).as_posix() for file in files if file.is_file())
        return sorted(name for name in names if "__pycache__" not in name)

    @functools.lru_cache(maxsize=None)
    def digest(self, path):
        return hashlib.sha256(meaning(path, self.read(path))).hexdigest()

    def read(self, path):
        return (self.root / path).read_bytes()


class Commit(Tree):
    """The files of a commit, read by git."""

    def __init__(self, commit, root=SHARE):
        super().__init__(root)
        self.commit = commit

    def git(self, *words):
        return subprocess.run(["git", "-C", str(self.root), *words], capture_output=True, check=True).stdout

    @functools.lru_cache(maxsize=None)
    def paths(self, folder):
        return sorted(self.git("ls-tree", "-r", "-z", "--name-only", self.commit, "--", folder).decode().split("\0")[:-1])

    def read(self, path):
        return self.git("show", f"{self.commit}:{path}")


def folder_of(pattern):
    """Returns the folder that has all files of a pattern, or the path if the pattern is a path."""
    return pattern if "*" not in pattern else pattern[: pattern.index("*")].rpartition("/")[0]


def hash_of(patterns, tree):
    """Returns the hash of the files that the patterns select. Returns "" if there are none: the result is then never unchanged."""
    paths = {path for pattern in patterns if not pattern.startswith("!") for path in tree.paths(folder_of(pattern))}
    lines = [f"{path} {tree.digest(path)}\n" for path in sorted(paths) if selects(patterns, path)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:32] if lines else ""


def hashes(rows, commit=None):
    """Returns the hash of the sources of each row. Key: the row's name. A bundle has no sources, but a file with the hashes."""
    if BUNDLE and commit is None:
        try:
            return json.loads((SHARE / BUNDLED).read_text("utf-8"))
        except (OSError, ValueError):
            return {}
    tree = Commit(commit) if commit else Tree()
    return {row.name: hash_of(row.sources, tree) for row in rows if row.sources}
