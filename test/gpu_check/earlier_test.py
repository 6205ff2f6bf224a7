#!/usr/bin/env python3
"""Tests which rows of scripts/gpu-check are skipped: the hashes of their sources, and the results of earlier runs."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from stand_ins import SCRIPTS, WholeCommand  # first: it finds gpu_check

from gpu_check import sources, table
from gpu_check.earlier import Earlier, gpu_model
from gpu_check.rows import Row
from gpu_check.sources import Commit, Tree, hash_of, meaning, selects

ROOT = SCRIPTS.parent
EVERY = [*table.first(None), *table.second(), *table.further(None, None)]


class Sources(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name)

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def test_comments_and_layout_change_nothing(self):
        for path, one, same, other in (
                ("a.cpp", '// A comment\nint f() { return 1; }  /* two\nlines */\n', "int f() {\n  return 1;\n}\n", "int f() { return 2; }\n"),
                ("a.cu", 'auto a = "// no comment";\n', '/**/auto a = "// no comment";  // yes\n', 'auto a = "// a comment";\n'),
                ("a.h", "int a = 1'000, b = '\"';  // \"\n", "int a = 1'000, b = '\"';\n", "int a = 1'000, b = '\"', c;\n"),
                ("a.h", 'auto a = R"x("//)x";\n', 'auto a = R"x("//)x";// y\n', 'auto a = R"x("//a)x";\n'),
                ("a.py", '"""What."""\ndef f():\n    """Says\n    it."""\n    return 1  # one\n', "def f():\n\n    return 1\n",
                 "def f():\n  return 1\n"),
                ("a.py", 'a = "# no comment"\n', '# yes\na = "# no comment"\n', 'a = "# a comment"\n'),
                ("a.yaml", "name: a#b  # the digits' name\n", "name: a#b\n", "name: a\n"),
                ("a.npy", "1 # 2", "1 # 2", "1 # 3")):
            texts = [meaning(path, text.encode()) for text in (one, same, other)]
            self.assertEqual(texts[0], texts[1], path)
            self.assertNotEqual(texts[0], texts[2], path)

    def test_patterns(self):
        patterns = ("core/*", "!core/backend/cpu/*", "a.yaml")
        for path, selected in (("core/a.h", True), ("core/backend/cuda/a.cu", True), ("core/backend/cpu/a.cpp", False), ("a.yaml", True),
                               ("b.yaml", False)):
            self.assertEqual(selects(patterns, path), selected, path)

    def test_a_hash_changes_with_the_selected_files_alone(self):
        patterns = ("core/*", "!core/cpu/*", "a.yaml")
        self.write("core/a.cpp", "int a;\n")
        self.write("core/cpu/a.cpp", "int a;\n")
        self.write("a.yaml", "a: 1\n")
        first = hash_of(patterns, Tree(self.root))
        self.write("core/cpu/a.cpp", "int b;\n")
        self.write("core/__pycache__/a.pyc", "x")
        self.write("b.yaml", "b: 1\n")
        self.write("core/a.cpp", "int a;  // of\n")
        self.assertEqual(hash_of(patterns, Tree(self.root)), first)
        seen = {first}
        for path, text in (("core/a.cpp", "int b;\n"), ("core/b.cpp", "int b;\n"), ("a.yaml", "a: 2\n")):
            self.write(path, text)
            seen.add(hash_of(patterns, Tree(self.root)))
        self.assertEqual(len(seen), 4)
        self.assertEqual(hash_of(("io/*",), Tree(self.root)), "")

    def test_a_commit_has_the_hash_of_its_files(self):
        patterns = ("core/*", "!core/cpu/*", "a.yaml")
        for path, text in (("core/a.cpp", "int a;  // x\n"), ("core/cpu/a.cpp", "int a;\n"), ("a.yaml", "a: 1\n"), ("b.yaml", "b: 1\n")):
            self.write(path, text)
        for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a", "commit", "-qm", "a"]):
            subprocess.run(["git", "-C", str(self.root), *words], check=True)
        first = hash_of(patterns, Tree(self.root))
        self.write("core/a.cpp", "int b;\n")
        self.assertEqual(hash_of(patterns, Commit("HEAD", self.root)), first)
        self.assertNotEqual(hash_of(patterns, Tree(self.root)), first)

    def test_every_row_has_sources(self):
        """Each pattern of each row selects a file, apart from the patterns that exclude files."""
        found = sources.hashes(EVERY)
        self.assertEqual(set(found), {row.name for row in EVERY})
        self.assertEqual([name for name, text in found.items() if len(text) != 32], [])
        for pattern in {pattern for row in EVERY for pattern in row.sources}:
            self.assertNotEqual(hash_of((pattern.lstrip("!"),), Tree(ROOT)), "", pattern)


class Results(unittest.TestCase):
    def test_the_committed_file_names_rows_that_exist(self):
        results = json.loads((ROOT / "docs/gpu-evidence.json").read_text())
        self.assertTrue(results)
        for model, found in results.items():
            self.assertEqual(set(found["rows"]) - {row.name for row in EVERY}, set(), model)
            for row in [*found["rows"].values(), *found["cases"].values()]:
                self.assertRegex(row["date"], r"^\d{4}-\d\d-\d\d$")
                self.assertRegex(row["sources"], r"^[0-9a-f]{32}$")

    def test_results_are_merged(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "new.json"
            known = pathlib.Path(folder) / "known.json"
            known.write_text(json.dumps({"other": {"rows": {"x": {"text": "kept"}}, "cases": {}}, "a GPU": {
                "rows": {"old": {"text": "o", "date": "d", "sources": "1"}, "fails": {"text": "f", "date": "d", "sources": "3"}},
                "cases": {"c": {"date": "d", "sources": "9"}, "e": {"date": "d", "sources": "4"}}}}))
            earlier = Earlier("a GPU", {"old": "1", "new": "2", "fails": "3", "kernel tests": "4"}, known, file)
            old, new, fails = (Row(name, 1, None) for name in ("old", "new", "fails"))
            self.assertEqual([earlier.unchanged(row) is not None for row in (old, new, fails)], [True, False, True])
            self.assertEqual([earlier.of_case(name) for name in "cex"], ["changed", "unchanged", "never"])
            earlier.add(new, "a text", {"a": 1})
            earlier.remove(fails)
            earlier.write()
            found = json.loads(file.read_text())
            self.assertEqual(found["other"]["rows"]["x"], {"text": "kept"})
            self.assertEqual(found["a GPU"]["rows"]["new"], {"date": earlier.today, "text": "a text", "sources": "2", "figures": {"a": 1}})
            self.assertEqual(set(found["a GPU"]["rows"]), {"old", "new"})
            for text in ("{torn", "[]", '{"a GPU": 3}'):
                known.write_text(text)
                self.assertIsNone(Earlier("a GPU", {"old": "1"}, known).unchanged(old))

    def test_model(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        os.environ["PATH"] = folder.name  # without nvidia-smi
        gpus = [{"uuid": "1", "name": "one"}, {"uuid": "2", "name": "two"}]
        self.assertEqual(gpu_model({"ranks": [{"gpu": "2", "gpus": gpus}]}), "two")
        for report in ({}, {"ranks": []}, {"ranks": [{"gpu": None, "gpus": gpus}]}):
            self.assertEqual(gpu_model(report), "")
        smi = pathlib.Path(folder.name) / "nvidia-smi"
        smi.write_text("#!/bin/sh\n[ $1 = --query-gpu=name ] && echo three && echo four\n")
        smi.chmod(0o755)
        self.assertEqual(gpu_model({}), "three")


class Skips(WholeCommand):
    def know(self, *names, model="a GPU", wrong=()):
        now = sources.hashes(EVERY)
        rows = {name: {"date": "2026-11-26", "text": "earlier", "sources": "0" * 32 if name in wrong else now[name],
                       "figures": {"samples_per_second": 250, "reserved_bytes": 7e9}} for name in names}
        self.known.write_text(json.dumps({model: {"rows": rows, "cases": {}}}))

    def test_unchanged_rows_are_skipped(self):
        names = [row.name for row in EVERY]
        self.know(*names, wrong=("quickstart",))
        finished = self.command(TRAINS="1")
        found = self.rows()
        self.assertEqual({name for name, row in found.items() if row["verdict"] != "unchanged"}, {"first look", "quickstart"})
        self.assertEqual(found["resnet50"]["text"], "unchanged since 2026-11-26 on a GPU: earlier")
        self.assertIn("resnet50, speed of PyTorch's eager             1.00 x", finished.stdout)
        again = self.command("--only", "resnet50", "kernel tests")
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        self.assertEqual([row["verdict"] for row in self.rows().values()], ["good", "figure", "good"])
        self.command("--all", "--second")
        self.assertNotIn("unchanged", [row["verdict"] for row in self.rows().values()])
        self.know(*names, model="another GPU")
        self.command("--second")
        self.assertNotIn("unchanged", [row["verdict"] for row in self.rows().values()])

    def test_results_are_written_beside_the_report(self):
        self.know("resnet20")
        self.command("--only", "kernel tests", "resnet50", "mnist")
        found = json.loads((self.folder / "report.evidence.json").read_text())["a GPU"]
        self.assertEqual(set(found["rows"]), {"resnet20", "resnet50", "kernel tests"})  # mnist was skipped
        self.assertEqual(found["rows"]["resnet50"]["figures"]["samples_per_second"], 1000)
        self.assertEqual(found["rows"]["resnet50"]["sources"], sources.hashes(EVERY)["resnet50"])
        self.assertEqual(len(found["cases"]), 23)
        self.known.write_text((self.folder / "report.evidence.json").read_text())
        self.command("--only", "kernel tests", "resnet50", BROKEN="1", FALLS_BACK="1")
        found = json.loads((self.folder / "report.evidence.json").read_text())["a GPU"]
        self.assertEqual(set(found["rows"]), {"resnet20"})
        self.assertEqual(len(found["cases"]), 22)

    def test_hashes_are_printed(self):
        self.assertEqual(json.loads(self.command("--sources").stdout), sources.hashes(EVERY))

    def test_a_bundle_has_the_hashes_in_a_file(self):
        bundle = self.folder / "bundle"
        share = bundle / "share/trainctl"
        for folder in (bundle / "libexec", share / "scripts"):
            folder.mkdir(parents=True)
        (bundle / "libexec/enter").write_text("")
        for name in ("gpu-check", "gpu_check"):
            subprocess.run(["cp", "-r", SCRIPTS / name, share / "scripts" / name], check=True)
        command = [share / "scripts/gpu-check", "--sources"]
        self.assertEqual(json.loads(subprocess.run(command, capture_output=True, check=True).stdout), {})
        (share / sources.BUNDLED).write_text('{"resnet50": "1"}')
        self.assertEqual(json.loads(subprocess.run(command, capture_output=True, check=True).stdout), {"resnet50": "1"})


if __name__ == "__main__":
    unittest.main()
