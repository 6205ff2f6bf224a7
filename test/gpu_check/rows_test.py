#!/usr/bin/env python3
"""Tests rows of scripts/gpu-check: the kernel tests in four processes, two ranks on one GPU, ncu's kernels, GPT-2, choices."""
import array
import importlib.util
import json
import os
import pathlib
import signal
import sys
import threading
import time
import unittest

from stand_ins import WholeCommand, begin_short_row  # first: it finds gpu_check

from gpu_check import figures, gpt2, nccl, suite, tools
from gpu_check.commands import Commands, Failed, Finished, Skipped
from gpu_check.earlier import Earlier
from gpu_check.evidence import KernelCache
from gpu_check.places import BENCH

NAMES = ["adds, too", "breaks [memory]", 'is "quoted" & <marked>', *(f"case {i}" for i in range(20))]


class InThisProcess(WholeCommand):
    def setUp(self):
        super().setUp()
        log = open(os.devnull, "w")
        self.addCleanup(log.close)
        self.commands = Commands(self.folder / "bin", self.folder, log)
        self.commands.begin_row(time.monotonic() + 300)

    def with_variables(self, **variables):
        for name, value in variables.items():
            os.environ[name] = value
            self.addCleanup(os.environ.pop, name, None)

    def order(self):
        return [line.split("|") for line in (self.folder / "order").read_text().splitlines()]


class KernelTests(InThisProcess):
    def earlier(self, unchanged=(), changed=()):
        cases = {name: {"date": "2026-11-26", "sources": "now"} for name in unchanged}
        cases.update({name: {"date": "2026-11-26", "sources": "then"} for name in changed})
        self.known.write_text(json.dumps({"a GPU": {"rows": {}, "cases": cases}}))
        self.commands.earlier = Earlier("a GPU", {"kernel tests": "now"}, self.known)

    def test_cases_that_never_ran_come_first(self):
        self.earlier(NAMES[:9], NAMES[9:18])
        batches = suite.in_order(NAMES, self.commands.earlier)
        self.assertEqual(sorted(name for batch in batches for name in batch), sorted(NAMES))
        states = [{self.commands.earlier.of_case(name) for name in batch} for batch in batches]
        self.assertEqual(sorted(states, key=lambda state: ["never", "changed", "unchanged"].index(*state)), states)
        self.assertEqual([state for state in states if state == {"never"}], [{"never"}] * 5)
        self.assertLessEqual(max(map(len, suite.in_order([str(i) for i in range(200)], None))), 8)
        self.assertEqual(suite.suite("test-cuda")(self.commands), "23 of 23 cases passed in 4 processes")
        self.assertEqual(sorted(name for line in self.order() for name in line), sorted(NAMES))
        first = [name for line in self.order() for name in line][:3]
        self.assertEqual(set(first) & set(NAMES[:9]), set())
        self.assertEqual({self.commands.earlier.of_case(name) for name in NAMES}, {"unchanged"})

    def test_four_processes_run_at_the_same_time(self):
        self.with_variables(TOGETHER="4")  # no case ends before
        suite.suite("test-cuda")(self.commands)
        running = most = 0
        for word in (self.folder / "running").read_text().split():
            running += 1 if word == "begins" else -1
            most = max(most, running)
        self.assertEqual((running, most), (0, 4))
        self.assertLessEqual(max(map(len, self.order())), 8)

    def test_cases_that_the_time_did_not_reach_are_named(self):
        self.earlier(NAMES[:10], NAMES[10:15])
        self.with_variables(SLOW="600", SLOW_CASES="case 1[5-9]")
        begin_short_row(self.commands)
        with self.assertRaises(Failed) as caught:
            suite.suite("test-cuda")(self.commands)
        text = str(caught.exception)
        self.assertRegex(text, r"^3 of 23 cases passed in 4 processes; no time was left for 5 cases that never ran on this GPU: 'case 15'")
        self.assertIn("no time was left for 5 cases whose sources have changed: 'case 7'", text)
        self.assertIn("10 cases that passed earlier with the same sources", text)
        self.assertEqual(sum(self.commands.earlier.of_case(name) == "unchanged" for name in NAMES), 10 + 3)

    def test_a_failure_before_the_end_of_the_time_is_named(self):
        self.with_variables(SLOW="600", WRONG="1")
        begin_short_row(self.commands)
        with self.assertRaisesRegex(Failed, r"^0 of 23 cases passed in 4 processes; 1 fail: 'case 0' \(there was no time to run it alone\); no"):
            suite.suite("test-cuda")(self.commands)

    def test_unchanged_cases_may_be_left_out(self):
        self.earlier(NAMES[2:])
        self.with_variables(SLOW="600", SLOW_CASES="case")
        begin_short_row(self.commands)
        text = suite.suite("test-cuda")(self.commands)
        self.assertRegex(text, r"^3 of 23 cases passed in 4 processes; no time was left for 20 cases that passed earlier")

    def test_a_crash_costs_no_other_case(self):
        self.earlier()
        self.with_variables(BROKEN="1")
        with self.assertRaisesRegex(Failed, r"^22 of 23 cases passed in 4 processes; 1 fail: 'breaks \[memory\]' \(exit code 9\)$") as caught:
            suite.suite("test-cuda")(self.commands)
        self.assertIn("illegal access", caught.exception.log)
        self.assertEqual([name for name in NAMES if self.commands.earlier.of_case(name) == "never"], ["breaks [memory]"])

    def test_a_case_that_fails_only_with_others_fails(self):
        self.with_variables(ILL="1")
        with self.assertRaisesRegex(Failed, r"1 fail: 'the process of .*'case 3'.*' \(exit code 9, but each case alone passed\)$"):
            suite.suite("test-cuda")(self.commands)

    def test_no_device_is_a_failure(self):
        for end in (0, 4):
            text = f"import sys\nprint('one\\ntwo' if '--list-test-names-only' in sys.argv else 'skipped, no CUDA device: x')\nsys.exit({end})\n"
            (self.folder / "bin/test-cuda").write_text(f"#!{sys.executable}\n{text}")
            with self.assertRaisesRegex(Failed, "^was skipped: no CUDA device$"):
                suite.suite("test-cuda")(self.commands)

    def test_a_signal_ends_the_processes(self):
        class Stop(BaseException):
            pass

        def stop(*_):
            raise Stop
        self.with_variables(SLOW="600")
        before = signal.signal(signal.SIGUSR1, stop)
        self.addCleanup(signal.signal, signal.SIGUSR1, before)

        def stop_when_four_run():
            while not (self.folder / "order").exists() or len(self.order()) < 4:
                time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGUSR1)
        threading.Thread(target=stop_when_four_run, daemon=True).start()
        with self.assertRaises(Stop):
            suite.suite("test-cuda")(self.commands)
        end = time.monotonic() + 60
        while self.commands.running and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(self.commands.running, set())

    def test_output_that_ends_early(self):
        good, bad = '<OverallResult success="true"/>', '<OverallResult success="false">'
        text = f'<TestCase name="a &amp; b" x>\n<Section>{good}</TestCase><TestCase name="c">{bad}</TestCase><TestCase name="d">'
        self.assertEqual(suite.passed_in(text + f'<TestCase name="e">{good}'), {"a & b", "e"})
        ended = f'<TestCase name="f"><FatalErrorCondition>SIGTERM - Termination request signal</FatalErrorCondition>{bad}'
        self.assertEqual(suite.failed_in(text + ended), {"c"})


class TwoRanks(InThisProcess):
    def test_an_older_nccl_is_skipped(self):
        self.assertEqual(self.command("--only", "nccl 2 ranks").returncode, 0)
        row = self.rows()["nccl 2 ranks"]
        self.assertEqual((row["verdict"], row["text"]), ("skipped", "NCCL 2.28.9 refuses two ranks on one GPU"))
        self.with_variables(NCCL="")
        with self.assertRaisesRegex(Skipped, "^there is no NCCL here$"):
            nccl.two_ranks(self.commands)

    def test_a_newer_nccl_runs(self):
        finished = self.command("--only", "nccl 2 ranks", NCCL="2.30.1", TRAINS="1")
        self.assertEqual(finished.returncode, 0, finished.stdout)
        self.assertEqual(self.rows()["nccl 2 ranks"]["text"],
                         "NCCL 2.30.1: all cases passed, abort ended both ranks; compared with staged, data: 50 losses differ by 0 (limit 0.001), "
                         "shard: 50 losses differ by 0 (limit 0.001), pipeline: 50 losses differ by 0 (limit 0.001)")
        log = (self.folder / "report.log").read_text()
        for words in ("test-mpi conformance nccl", "test-mpi networks nccl", "test-mpi abort nccl", "strategy.shard=gradients"):
            self.assertIn(words, log)

    def test_what_differs_fails(self):
        for variables, text in (({"OFF": "0.1"}, "pipeline: 50 losses differ by 0.05 (limit 0.001)"),
                                ({"ABORT": "0"}, "abort: exit code 0 instead of 4")):
            self.assertEqual(self.command("--only", "nccl 2 ranks", NCCL="2.30.1", TRAINS="1", **variables).returncode, 1)
            self.assertEqual((self.rows()["nccl 2 ranks"]["verdict"], self.rows()["nccl 2 ranks"]["text"]), ("FAILED", text))

    def test_the_folder_of_another_library(self):
        self.with_variables(LD_LIBRARY_PATH="/old")
        self.assertEqual(nccl.variables(), {"NCCL_MULTI_RANK_GPU_ENABLE": "1"})
        self.with_variables(GPU_CHECK_NCCL="/new")
        self.assertEqual(nccl.variables()["LD_LIBRARY_PATH"], "/new:/old")


class Profiles(InThisProcess):
    def test_four_kernels(self):
        kernels = [("void convolve_few_channels<x>(y)", "2,000", "40.4"), ("void convolve_few_channels<z>(y)", "1,000", "44"),
                   ("void normalise_and_pool<x>(y)", "5", "n/a"), ("other", "9", "9")]
        lines = ['"ID","Kernel Name","gpu__time_duration.sum","dram__throughput.avg.pct_of_peak_sustained_elapsed"', '"","","us","%"']
        lines += [f'"{i}","{name}","{duration}","{share}"' for i, (name, duration, share) in enumerate(kernels)]
        program = self.folder / "bin/ncu"
        program.write_text(f"#!{sys.executable}\nimport sys\nassert 'regex:{'|'.join(tools.PROFILED)}' in sys.argv\nprint({chr(10).join(lines)!r})\n")
        program.chmod(0o755)
        self.with_variables(PATH=f"{program.parent}:{os.environ['PATH']}")
        self.addCleanup(os.environ.__setitem__, "PATH", os.environ["PATH"].partition(":")[2])
        text, _ = tools.four_kernels(self.folder / "out.csv")(self.commands)
        self.assertEqual(text, "convolve_few_channels 40 % of the bandwidth, normalise_and_pool; in out.csv; no launch of sum_few_channels, "
                               "gradient_by_input")
        self.assertEqual([line.split(",")[0] for line in (self.folder / "out.csv").read_text().splitlines()], ["ID", "0", "2"])
        program.write_text("#!/bin/sh\necho no permission; exit 1\n")
        with self.assertRaisesRegex(Failed, "no kernel was profiled, exit code 1"):
            tools.four_kernels(self.folder / "out.csv")(self.commands)


class Gpt2(InThisProcess):
    def test_a_step_on_random_tokens(self):
        (self.folder / "cache/trainctl").mkdir(parents=True)
        self.with_variables(XDG_CACHE_HOME=str(self.folder / "cache"))
        text, found = gpt2.step(self.commands)
        self.assertEqual(text, "1024000 tokens/s, 7000 MB, GPU idle 1.0%")
        tokens = array.array("I", (self.folder / "tokens.bin").read_bytes())
        self.assertEqual(len(tokens), gpt2.SEQUENCES * 1024 + 1)  # each token of a text has a next one
        self.assertLess(max(tokens), gpt2.TOKENS)
        self.assertGreater(len(set(tokens)), 0.4 * len(tokens))
        self.assertEqual([target.of({"gpt2": found, "gpt2 compiled": {"samples_per_second": 2000, "reserved_bytes": 14e9}})
                          for target in gpt2.TARGETS], [0.5, 0.5])

    def test_the_table_of_ops(self):
        text, _ = gpt2.ops(self.folder / "gpt2.json")(self.commands)
        self.assertTrue(text.startswith("5 ops in gpt2.json, step 100.0 ms; slowest: layer 4 conv2d 4.00 ms"), text)
        self.assertEqual(len(json.loads((self.folder / "gpt2.json").read_text())["ops"]), 5)

    def test_rows_of_pytorch(self):
        class Measured:
            torch_python = "python"

            def call(self, _, script, *words):
                kernels = {"cudnn": {"forward_ms": 0.5, "backward_ms": 1.25}, "flash": {"why": "no kernel"}}
                found = {"peer_attention.py": {"kernels": kernels}, "peer_gpt2.py": {"samples_per_second": 100, "reserved_bytes": 8e9}}
                return Finished(json.dumps({**found[script.name], "version": "2.11.0", "cudnn": 91900}), "", 0)
        self.assertEqual(gpt2.attention(Measured())[0],
                         "cudnn: 0.500 ms forward, 1.250 ms backward; flash: no kernel; PyTorch 2.11.0 with cuDNN 91900")
        self.assertEqual(gpt2.compiled(Measured())[0], "102400 tokens/s, 8000 MB reserved, PyTorch 2.11.0 with cuDNN 91900")

    @unittest.skipUnless(importlib.util.find_spec("torch"), "no PyTorch")
    def test_the_network_in_pytorch(self):
        sys.path.insert(0, str(BENCH))
        self.addCleanup(sys.path.remove, str(BENCH))
        import torch
        from peer_gpt2 import Gpt2 as Network
        with torch.device("meta"):
            self.assertEqual(sum(parameter.numel() for parameter in Network().parameters()), 124_439_808)
        network = Network(positions=8, layers=2, heads=2, width=8, tokens=11)
        tokens = torch.arange(8)[None]
        changed = tokens.clone()
        changed[0, 5] = 10
        differs = (network(tokens) != network(changed)).any(-1)[0].tolist()
        self.assertEqual(differs, [False] * 5 + [True] * 3)  # a position sees itself and those before it

    def test_pytorch_knows_the_networks_of_all_rows(self):
        peer = (BENCH / "peer_cuda.py").read_text()
        for network in figures.NETWORKS:
            self.assertIn(f'"{network}": (', peer)
        self.assertNotIn("gpt2", figures.NETWORKS)  # has a peer of its own


class Choices(WholeCommand):
    def test_carried_choices_are_used_and_later_ones_come_first(self):
        carried, file, cache = self.folder / "carried.json", self.folder / "beside.json", self.folder / "cache"
        cache.mkdir()
        carried.write_text(json.dumps({"kernels-1": "old", "kernels-2": "other GPU", "../x": "y", "kernels-/": "z", "kernels-3": 3}))
        KernelCache(file, cache, carried).keep()
        self.assertEqual(json.loads(file.read_text()), {"kernels-1": "old", "kernels-2": "other GPU"})
        file.write_text(json.dumps({"kernels-1": "new"}))
        KernelCache(file, cache, carried)
        self.assertEqual({path.name: path.read_text() for path in (cache / "trainctl").iterdir()},
                         {"kernels-1": "new", "kernels-2": "other GPU"})


if __name__ == "__main__":
    unittest.main()
