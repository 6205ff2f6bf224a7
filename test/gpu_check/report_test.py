#!/usr/bin/env python3
"""Tests the rows and the report of scripts/gpu-check with programs that replace the real ones (stand_ins.py)."""
import ast
import contextlib
import io
import json
import os
import pathlib
import signal
import sys
import tempfile
import time
import unittest

from stand_ins import Folder, WholeCommand, begin_short_row  # first: it finds gpu_check

from gpu_check import at_size, checks, figures, fusion, table
from gpu_check.commands import Commands, Failed, Finished, Skipped, last_json
from gpu_check.report import Report
from gpu_check.rows import Row, run_rows


class Script(WholeCommand):
    def test_good(self):
        finished = self.command("--only", "kernel tests", "staged", "nccl")
        self.assertEqual(finished.returncode, 0, finished.stdout + finished.stderr)
        self.assertEqual([row["verdict"] for row in self.rows().values()], ["good"] * 4)
        self.assertTrue(json.loads(self.json.read_text())["ok"])

    def test_broken_case_is_named(self):
        finished = self.command("--only", "kernel tests", "staged", BROKEN="1")
        self.assertEqual(finished.returncode, 1)
        row = self.rows()["kernel tests"]
        self.assertEqual(row["text"], "22 of 23 cases passed in 4 processes; 1 fail: 'breaks [memory]' (exit code 9)")
        self.assertIn("illegal access", row["log"])
        self.assertIn("illegal access", (self.folder / "report.log").read_text())
        self.assertEqual(self.rows()["staged"]["verdict"], "good")

    def test_figures_decide_nothing(self):
        finished = self.command("--only", "resnet50", "resnet50 deterministic", "resnet50 eager", "mlp", TRAINCTL_DATA="data")
        self.assertEqual(finished.returncode, 0, finished.stdout + finished.stderr)
        self.assertIn("resnet50, GPU idle in a step                     1.0%  <= 2.0%    met", finished.stdout)
        self.assertIn("resnet50, what train.deterministic costs       100.0%", finished.stdout)
        verdicts = {target["name"]: target["verdict"] for target in json.loads(self.json.read_text())["targets"]}
        self.assertEqual(verdicts["resnet20, speed of PyTorch's eager"], "not measured")

    def test_data_is_found_from_the_users_folder(self):
        (self.folder / "data/mnist").mkdir(parents=True)
        for variables in ({"TRAINCTL_DATA": "data"}, {"TRAINCTL_DATA": ""}):
            self.assertEqual(self.command("--only", "mnist", **variables).returncode, 1)
            self.assertEqual(self.rows()["mnist"]["verdict"], "FAILED")  # it was tried
            self.assertIn(f"{self.folder.resolve()}/data /", self.rows()["mnist"]["log"])
        self.assertEqual(self.command("--only", "mnist", TRAINCTL_DATA="elsewhere").returncode, 0)
        self.assertEqual(self.rows()["mnist"]["verdict"], "skipped")

    def test_first_look(self):
        """It ends the script if there is no GPU, and in no other case."""
        self.json.write_text("an earlier report")
        self.assertEqual(self.command(NO_RUN="1", GPU="").stderr, "no CUDA device: the disk is gone\n")
        self.assertFalse(self.json.exists())
        finished = self.command("--only", "kernel tests", NO_RUN="1")
        self.assertEqual(finished.returncode, 1)
        self.assertEqual(self.rows()["first look"]["verdict"], "FAILED")
        self.assertEqual(self.rows()["first look"]["text"], "a run would not start: the disk is gone")
        self.assertEqual(self.rows()["kernel tests"]["verdict"], "good")
        if not list(pathlib.Path("/dev").glob("nvidia[0-9]*")):
            (self.folder / "bin/trainctl").write_text("#!/bin/sh\necho torn; exit 7\n")
            self.assertIn("the doctor failed: printed no JSON, exit code 7\ntorn", self.command().stderr)

    def test_fallbacks_fail_a_row(self):
        finished = self.command("--only", "resnet50", FALLS_BACK="1")
        self.assertEqual(finished.returncode, 1)
        row = self.rows()["resnet50"]
        self.assertEqual(row["verdict"], "FAILED")
        self.assertTrue(row["text"].startswith("1 fallbacks; 1000 samples/s"), row["text"])
        self.assertIn("without a CUDA graph", row["log"])
        self.assertEqual(row["figures"]["samples_per_second"], 1000)

    def test_kernels_are_kept_and_used_again(self):
        self.command("--only", "resnet50")
        self.assertEqual(json.loads((self.folder / "report.kernels.json").read_text()), {"kernels-1": "chosen"})
        self.assertIn("kernels before: none", (self.folder / "report.log").read_text())
        self.command("--only", "resnet50")
        self.assertIn("kernels before: chosen", (self.folder / "report.log").read_text())
        (self.folder / "report.kernels.json").write_text("{torn")
        self.assertEqual(self.command("--only", "resnet50").returncode, 0)
        self.assertIn("kernels before: none", (self.folder / "report.log").read_text())

    def test_table_of_ops(self):
        self.assertEqual(self.command("--only", "resnet50 ops").returncode, 0)
        self.assertEqual(len(json.loads((self.folder / "report.ops.json").read_text())["ops"]), 5)
        self.assertIn("slowest: layer 4 conv2d 4.00 ms", self.rows()["resnet50 ops"]["text"])

    def test_fused_against_unfused(self):
        self.assertEqual(self.command("--second", "--only", "fused against unfused").returncode, 0)
        row = self.rows()["fused against unfused"]
        expected = ("statistics: 1 of 2 faster fused, 0.25 ms of 2.50; gradient: 0 of 1 faster fused, 0.00 ms of 2.00; "
                    "gradient, 56x56: cuDNN has no engine")
        self.assertEqual((row["verdict"], row["text"]), ("figure", expected))
        self.assertEqual(len(row["figures"]["patterns"]), 3)
        os.environ["HANGS"] = "1"
        self.addCleanup(os.environ.pop, "HANGS")
        with open(os.devnull, "w") as log:
            commands = Commands(self.folder / "bin", self.folder, log)
            begin_short_row(commands)
            text, figures_found = fusion.fused_against_unfused("bfloat16")(commands)
        self.assertEqual((text, len(figures_found["patterns"])), (expected + "; no time was left for more", 3))
        (self.folder / "bin/test-cuda").write_text("#!/bin/sh\necho torn; exit 1\n")
        self.assertEqual(self.command("--only", "fused against unfused").returncode, 0)
        self.assertEqual(self.rows()["fused against unfused"]["verdict"], "no figure")

    def test_patterns_of_another_type_are_no_figure(self):
        self.assertEqual(self.command("--only", "float16 patterns").returncode, 0)
        self.assertEqual(self.rows()["float16 patterns"]["verdict"], "figure")
        self.command("--only", "float16 patterns", TIMES="bfloat16")
        row = self.rows()["float16 patterns"]
        self.assertEqual((row["verdict"], row["text"]), ("no figure", "patterns were timed in bfloat16 instead of float16"))

    def test_gpu_log(self):
        """nvidia-smi describes the GPU once and logs its clocks until the script ends."""
        smi = self.folder / "bin/nvidia-smi"
        smi.write_text("#!/bin/sh\n[ \"$1\" = -q ] && echo a GPU && exit\necho \"$@\"; echo $$ >pid; exec sleep 60\n")
        smi.chmod(0o755)
        self.command("--only", "kernel tests", PATH=f"{smi.parent}:{os.environ['PATH']}")
        self.assertEqual((self.folder / "report.smi.txt").read_text(), "a GPU\n")
        self.assertIn("power.draw", (self.folder / "report.csv").read_text())
        with self.assertRaises(ProcessLookupError):
            os.kill(int((self.folder / "pid").read_text()), 0)


class Rows(Folder):
    """Tests rows that are made up for the test, in this process."""

    def run_rows(self, rows, seconds):
        work = self.folder / "work"
        work.mkdir()
        self.shown, sys.stdout = sys.stdout, io.StringIO()
        try:
            report = Report(self.json, {})
            with open(self.folder / "report.log", "w") as log:
                run_rows(rows, Commands(self.folder, work, log), report, time.monotonic() + seconds)
            code = report.finish()
        finally:
            self.table, sys.stdout = sys.stdout.getvalue(), self.shown
        return code, {row["name"]: (row["verdict"], row["text"]) for row in json.loads(self.json.read_text())["rows"]}

    def test_hanging_and_raising(self):
        seen = []

        def look(_):
            seen.append(json.loads(self.json.read_text())["rows"][0]["verdict"])
            return "there"
        rows = [
            Row("hangs", 1, lambda commands: commands.call("sh", "-c", "echo before; sleep 60 & sleep 60")),
            Row("looks", 5, look),
            Row("raises", 5, lambda _: {}["nothing"]),
            Row("poor", 5, lambda commands: commands.call("false"), False),
        ]
        start = time.monotonic()
        code, found = self.run_rows(rows, 60)
        self.assertLess(time.monotonic() - start, 30)
        self.assertEqual(code, 1)
        self.assertEqual(found["hangs"], ("FAILED", "took longer than 1 s"))
        self.assertIn("    | before", self.table)
        self.assertEqual((seen, found["looks"]), (["FAILED"], ("good", "there")))
        self.assertEqual(found["raises"], ("FAILED", "KeyError: 'nothing'"))
        self.assertEqual(found["poor"], ("no figure", "exit code 1"))
        self.assertIn("2 failed", self.table)

    def test_deadline(self):
        rows = [Row("slow", 60, lambda commands: commands.call("sleep", "60")), Row("late", 60, lambda _: "x"),
                Row("figure", 60, lambda _: "x", False)]
        start = time.monotonic()
        code, found = self.run_rows(rows, 3)
        self.assertLess(time.monotonic() - start, 20)
        self.assertEqual(code, 1)
        self.assertEqual(found["slow"][0], "FAILED")
        self.assertEqual([found["late"], found["figure"]], [("not run", "no time was left")] * 2)
        self.assertIn("2 failed", self.table)

    def test_a_signal_ends_with_the_report(self):
        def stop(commands):
            os.kill(os.getpid(), signal.SIGTERM)
            commands.call("sleep", "60")
        code, found = self.run_rows([Row("first", 5, lambda _: "x"), Row("stopped", 60, stop), Row("last", 5, lambda _: "x")], 90)
        self.assertEqual(code, 1)
        self.assertEqual(found, {"first": ("good", "x"), "stopped": ("FAILED", "stopped by SIGTERM"),
                                 "last": ("not run", "stopped by SIGTERM")})
        self.assertEqual(signal.getsignal(signal.SIGTERM), signal.SIG_DFL)


class Parts(unittest.TestCase):
    def test_the_limits_fit_the_deadline(self):
        self.assertEqual([(row.name, row.limit) for row in table.first(None) if "gpt2" not in row.name],
                         [("nccl 2 ranks", 90), ("resnet50", 60), ("four kernels", 60), ("float16 patterns", 50), ("kernel tests", 90)])
        self.assertEqual(sum(row.limit for row in table.first(None) if "gpt2" in row.name), 225)
        for rows in (table.first(None), table.second()):
            self.assertLess(table.FIRST_LOOK.limit + sum(row.limit for row in rows), table.SECONDS)
        self.assertLess(table.SECONDS, 600)

    def test_further_rows_run_if_their_limit_fits_the_time_left(self):
        ran = []
        rows = [Row(name, limit, lambda _, name=name: ran.append(name) or name) for name, limit in (("long", 50), ("short", 1))]
        with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as log, contextlib.redirect_stdout(io.StringIO()):
            run_rows([], Commands(folder, folder, log), Report(pathlib.Path(folder) / "r.json", {}), time.monotonic() + 5, rows)
        self.assertEqual(ran, ["short"])

    def test_samples_are_in_numpys_format(self):
        with tempfile.TemporaryDirectory() as folder:
            at_size.make_samples(pathlib.Path(folder) / "s", 6, (4, 5, 3), 10)
            for name, dtype, shape, count in (("x", "|u1", "(6, 4, 5, 3,)", 360), ("y", "<i4", "(6,)", 24)):
                data = (pathlib.Path(folder) / "s" / f"{name}.npy").read_bytes()
                size = int.from_bytes(data[8:10], "little")
                header = ast.literal_eval(data[10 : 10 + size].decode())
                self.assertEqual((header["descr"], str(header["shape"])), (dtype, str(ast.literal_eval(shape))))
                self.assertEqual((10 + size) % 64, 0)
                self.assertEqual(len(data) - 10 - size, count)

    def test_distances_at_size(self):
        losses, norms = [1.0] * at_size.STEPS, [2.0] * at_size.STEPS
        first, norm, mean = at_size.apart(([1.1, *losses[1:]], [3.0, *norms[1:]]), (losses, norms))
        self.assertAlmostEqual(first, 0.1)
        self.assertAlmostEqual(norm, 0.5)
        self.assertAlmostEqual(mean, 0.1 / at_size.STEPS)
        self.assertFalse(at_size.judged("x", (first, norm, float("nan")), (1, 1, 1))[1])
        with self.assertRaises(Failed):
            at_size.apart((losses[1:], norms), (losses, norms))

    def test_last_json(self):
        self.assertEqual(last_json('{"a": 1}\n{"a": 2}\n[3]\n4\n{torn'), {"a": 2})
        self.assertIsNone(last_json("nothing\n"))

    def test_pytorch_is_looked_for_once(self):
        class Without:
            calls = 0

            def call(self, *words, may_fail):
                self.calls += 1
                return Finished("False\n", "", 0)
        commands = Without()
        for mode in ("eager", "compiled"):
            with self.assertRaises(Skipped):
                figures.pytorch("mlp", mode)(commands)
        self.assertLessEqual(commands.calls, 2)  # this interpreter, and python3

    def test_targets(self):
        ours = {"samples_per_second": 1300, "memory_bytes": 9, "mean_seconds": 1, "gpu_idle_seconds": 0.03}
        values = {"resnet50": ours, "resnet50 eager": {"samples_per_second": 1000, "reserved_bytes": 10}}
        found = {target.name: (target.of(values), target.of(values) is not None and target.holds(target.of(values)))
                 for target in figures.TARGETS if target.limit is not None}
        self.assertEqual(found["resnet50, speed of PyTorch's eager"], (1.3, True))
        self.assertEqual(found["resnet50, GPU idle in a step"], (0.03, False))
        self.assertEqual(found["resnet50, memory of what PyTorch reserves"], (0.9, False))
        self.assertEqual(found["mlp, speed of PyTorch's eager"], (None, False))

    def test_hashes(self):
        self.assertEqual(checks.same_hashes({"1 rank": "a" * 64, "2 ranks": "a" * 64}), "1 rank, 2 ranks: aaaaaaaaaaaa")
        with self.assertRaisesRegex(Failed, "weights differ: a{12} on 1 rank, b{12} on 2 ranks$"):
            checks.same_hashes({"1 rank": "a" * 64, "2 ranks": "b" * 64})

    def test_distances(self):
        self.assertAlmostEqual(checks.farthest([1, 2], [1, 1.6]), 0.25)
        self.assertAlmostEqual(checks.average([1, 2], [1, 1.5]), 0.2)
        with self.assertRaises(Failed):
            checks.at_most(float("nan"), 1, "a loss")
        with self.assertRaises(Failed):
            checks.farthest([1], [1, 2])


if __name__ == "__main__":
    unittest.main()
