"""Provides programs that replace the real ones in the tests of gpu-check, and behave as environment variables say."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPTS))

PROGRAMS = {
    "trainctl": """
import json, os, sys
if sys.argv[1] == "doctor":
    problems = [{"message": "the disk is gone", "error": True}] if "NO_RUN" in os.environ else []
    libraries = [{"name": "NCCL", "built": "2.28.9", "found": os.environ.get("NCCL", "2.28.9")}]
    rank = {"gpu": os.environ.get("GPU", "GPU-1") or None, "gpus": [{"uuid": "GPU-1", "name": "a GPU"}], "cuda": {"libraries": libraries}}
    print(json.dumps({"ok": not problems, "problems": problems, "ranks": [rank]}))
elif sys.argv[1] == "bench" and sys.argv[2] == "ops":
    ops = [{"layer": f"layer {i}", "op": "conv2d", "seconds": i / 1000} for i in range(5)]
    print(json.dumps({"step_seconds": 0.1, "ops": ops}))
elif sys.argv[1] == "bench":
    assert "data.cache=memory" in sys.argv
    cache = os.path.join(os.environ["XDG_CACHE_HOME"], "trainctl", "kernels-1")
    seen = open(cache).read() if os.path.exists(cache) else "none"
    open(cache, "w").write("chosen")
    print("kernels before:", seen, file=sys.stderr)
    if "FALLS_BACK" in os.environ:
        print("warning: steps run without a CUDA graph, which makes small networks slower: refused", file=sys.stderr)
    slow = 2 if "train.deterministic=true" in sys.argv else 1
    print("a warning", file=sys.stderr)
    print(json.dumps({"samples_per_second": 1000 / slow, "memory_bytes": 7e9, "mean_seconds": 0.1, "gpu_idle_seconds": 0.001,
                      "waited_seconds": 0}))
    print("3")
elif sys.argv[1] == "run" and "TRAINS" in os.environ:
    shares = os.environ.get("NCCL_MULTI_RANK_GPU_ENABLE") == "1"
    nccl = "cluster.communication=nccl" in sys.argv
    assert not nccl or shares
    off = float(os.environ["OFF"]) if nccl and "strategy.pipeline=2" in sys.argv and "OFF" in os.environ else 0
    folder = sys.argv[sys.argv.index("--run-dir") + 1]
    os.makedirs(folder)
    with open(folder + "/metrics.jsonl", "w") as file:
        for i in range(50):
            print(json.dumps({"event": "step", "loss": 2.0 + off}), file=file)
elif sys.argv[1] == "run":
    print(os.environ["TRAINCTL_DATA"], os.getcwd())
    sys.exit(3)
""",
    # Behaves like Catch2 2 with its xml reporter. A broken case crashes the program. Each process writes a line to the file `running` when
    # it begins and when it ends. With TOGETHER=n, a process waits until n processes have begun. With SLOW=n, a case takes n seconds if its
    # name matches SLOW_CASES.
    "test-cuda": r"""
import os, sys, time
names = ["adds, too", "breaks [memory]", "is \"quoted\" & <marked>", *(f"case {i}" for i in range(20))]
if "--list-test-names-only" in sys.argv:
    print("\n".join(names))
    sys.exit(3)
if sys.argv[1] == "time-patterns":
    assert sys.argv[2] == "256"
    dtype = ', "dtype": "' + os.environ.get("TIMES", sys.argv[3]) + '"}'
    print('{"pattern": "statistics", "shape": "56x56", "ours_ms": 1.5, "pattern_ms": 1.25' + dtype)
    print('{"pattern": "statistics", "shape": "28x28", "ours_ms": 1.0, "pattern_ms": 1.5' + dtype)
    print('{"pattern": "gradient", "shape": "56x56", "ours_ms": 2.0, "pattern_ms": null, "why": "cuDNN has no engine"' + dtype, flush=True)
    time.sleep(60 if "HANGS" in os.environ else 0)
    sys.exit(0)
assert sys.argv[2:] == ["--reporter", "xml"]
import html, re
def note(word):
    with open("running", "a") as file:
        print(word, file=file)
note("begins")
together = int(os.environ.get("TOGETHER", 0))
while open("running").read().count("begins") < together:
    time.sleep(0.01)
chosen = [part.replace("\\", "") for part in re.split(r"(?<!\\),", sys.argv[1])]
assert all(name in names for name in chosen), chosen
with open("order", "a") as file:
    print("|".join(chosen), file=file)
for name in sorted(chosen, key=names.index):
    print(f'<TestCase name="{html.escape(name)}" tags="[x]" line="1">', flush=True)
    if "WRONG" in os.environ and name == "case 0":
        print('<OverallResult success="false"/></TestCase>', flush=True)
        continue
    time.sleep(float(os.environ.get("SLOW", 0)) if re.match(os.environ.get("SLOW_CASES", ""), name) else 0)
    if "ILL" in os.environ and name == "case 3" and len(chosen) > 1 or "BROKEN" in os.environ and name.startswith("breaks"):
        print("illegal access", flush=True)
        sys.exit(9)
    print('<OverallResult success="true"/></TestCase>', flush=True)
note("ends")
""",
    "mpirun": """
import os, sys
assert os.environ["OMPI_MCA_plm"] == "isolated" and os.environ["OMPI_ALLOW_RUN_AS_ROOT"] == "1"
scene = sys.argv[-2]
assert sys.argv[-1] != "nccl" or sys.argv[2] == "1" or os.environ["NCCL_MULTI_RANK_GPU_ENABLE"] == "1"
print({"conformance": "all cases passed", "networks": "all networks agree", "abort": "rank 1 aborts"}[scene])
sys.exit(int(os.environ.get("ABORT", 4)) if scene == "abort" else 0)
""",
    "test-mpi": "",
}


def begin_short_row(commands):
    """Begins a row with time to start several processes, however busy the machine is."""
    start = time.monotonic()
    commands.begin_row(start + 300)
    commands.call(commands.programs / "test-cuda", "--list-test-names-only", may_fail=True)
    commands.begin_row(time.monotonic() + 2 + 10 * (time.monotonic() - start))


class Folder(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        self.json = self.folder / "report.json"
        self.known = self.folder / "known.json"


class WholeCommand(Folder):
    """Tests that run the whole script."""

    def setUp(self):
        super().setUp()
        for name, text in PROGRAMS.items():
            path = self.folder / "bin" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"#!{sys.executable}\n{text}")
            path.chmod(0o755)

    def command(self, *words, **variables):
        command = [SCRIPTS / "gpu-check", "--programs", self.folder / "bin", "--json", self.json, *words]
        environment = {**os.environ, "GPU_CHECK_EVIDENCE": str(self.known), **variables}
        return subprocess.run(list(map(str, command)), cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300)

    def rows(self):
        return {row["name"]: row for row in json.loads(self.json.read_text())["rows"]}
