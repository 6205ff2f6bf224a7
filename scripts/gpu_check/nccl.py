"""Checks two ranks that share one GPU through NCCL: communicators, recorded steps, an abort, and training compared with staged ranks."""
import os

from .checks import QUICKSTART, STEPS, at_most, farthest, losses, scene
from .commands import Failed, Skipped

FIRST = (2, 30)  # the first version of NCCL that accepts several ranks on one GPU, if SHARES is 1
SHARES = "NCCL_MULTI_RANK_GPU_ENABLE"
FOLDER = "GPU_CHECK_NCCL"  # the folder of another libnccl.so.2, which the loader then finds first
WAYS = {"data": [], "shard": ["strategy.shard=gradients"], "pipeline": ["strategy.pipeline=2"]}
ABORTED = 4  # the exit code that the aborting rank gives


def variables():
    """Returns the environment variables of commands with two ranks on one GPU."""
    folder = os.environ.get(FOLDER)
    path = [part for part in (folder, os.environ.get("LD_LIBRARY_PATH")) if part]
    return {SHARES: "1", **({"LD_LIBRARY_PATH": ":".join(path)} if folder else {})}


def version(commands, environment):
    """Returns the version of the NCCL that trainctl loads, such as "2.28.9", or "" if there is none."""
    report = commands.document("doctor", "--device", "cuda", "--ranks", 1, "--json", may_fail=True, environment=environment)
    for rank in report.get("ranks", [])[:1]:
        for library in rank.get("cuda", {}).get("libraries", []):
            if library["name"] == "NCCL":
                return library["found"]
    return ""


def two_ranks(commands):
    """Runs the cases of a communicator (recorded steps and two communicators are among them), networks with collectives, an abort, and
    50 steps of each way to split the quickstart."""
    environment = variables()
    found = version(commands, environment)
    if not found:
        raise Skipped("there is no NCCL here")
    if tuple(int(part) for part in found.split(".")[:2]) < FIRST:
        raise Skipped(f"NCCL {found} refuses two ranks on one GPU")
    for name, end in (("conformance", "all cases passed"), ("networks", "all networks agree")):
        finished = scene(commands, 2, name, "nccl", environment=environment)
        if end not in finished.out:
            raise Failed(f"{name}: '{end}' was not printed", finished.out + finished.err)
    aborted = scene(commands, 2, "abort", "nccl", environment=environment, may_fail=True)
    if aborted.code != ABORTED or "rank 1 aborts" not in aborted.out:
        raise Failed(f"abort: exit code {aborted.code} instead of {ABORTED}", aborted.out + aborted.err)
    texts = []
    for way, settings in WAYS.items():
        hosts, gpus = (losses(commands.train(QUICKSTART, "cuda", *STEPS, *settings, f"cluster.communication={kind}", ranks=2,
                                             environment=environment)) for kind in ("staged", "nccl"))
        texts.append(at_most(farthest(gpus, hosts), 1e-3, f"{way}: 50 losses differ by"))
    return f"NCCL {found}: all cases passed, abort ended both ranks; compared with staged, " + ", ".join(texts)
