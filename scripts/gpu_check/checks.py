"""The checks that decide the exit code: tests, training, parity with the CPU, determinism."""
from .commands import Failed, Skipped
from .places import DATA, QUICKSTART, SHARE
from .rows import Row

SGD = "train.optimizer={name: sgd, learning_rate: 0.05, momentum: 0.9}"
STEPS = ["train.max_steps=50", "log.every=1 steps", SGD]

# The variables that trainctl sets when it starts ranks on one host: root is allowed, ssh is not used, and ranks are neither
# bound to cores nor busy while they wait.
MPIRUN = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_plm": "isolated",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "vader,self",
    "OMPI_MCA_oob_tcp_if_include": "lo",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
}


def losses(events):
    return [event["loss"] for event in events if event["event"] == "step"]


def accuracy(events):
    return [event for event in events if event["event"] == "epoch"][-1]["validation"]["accuracy"]


def farthest(ours, theirs):
    """Returns the largest relative difference between two lists of losses."""
    if len(ours) != len(theirs) or not ours:
        raise Failed(f"{len(ours)} and {len(theirs)} steps were logged")
    return max(abs(a - b) / max(abs(b), 1e-6) for a, b in zip(ours, theirs))


def average(ours, theirs):
    """Returns the mean difference between two lists of losses, relative to the mean loss."""
    farthest(ours, theirs)
    return sum(abs(a - b) for a, b in zip(ours, theirs)) / sum(theirs)


def at_most(value, limit, what):
    text = f"{what} {value:.2g} (limit {limit:g})"
    if not value <= limit:
        raise Failed(text)
    return text


def at_least(value, limit):
    if not value >= limit:
        raise Failed(f"validation accuracy {value:.4f} instead of {limit}")
    return f"validation accuracy {value:.4f}"


def scene(commands, ranks, *words, environment=None, **more):
    """Runs a scene of test-mpi on ranks of this host."""
    mpirun = commands.programs / "mpirun"
    return commands.call(mpirun if mpirun.exists() else "mpirun", "-n", ranks, "--oversubscribe", commands.programs / "test-mpi", *words,
                         environment={**MPIRUN, **(environment or {})}, **more)


def conformance(transport, ranks):
    def run(commands):
        finished = scene(commands, ranks, "conformance", transport)
        if "all cases passed" not in finished.out:
            raise Failed("not all cases passed", finished.out + finished.err)
        return f"all cases passed on {ranks} rank{'s' * (ranks > 1)}"
    return run


def quickstart(commands):
    return at_least(accuracy(commands.train(QUICKSTART, "cuda")), 0.97)


def mnist(commands):
    if not (DATA / "mnist").exists():
        raise Skipped(f"there is no {DATA / 'mnist'} (TRAINCTL_DATA)")
    return at_least(accuracy(commands.train(SHARE / "configs/mnist-cnn.yaml", "cuda", "train.epochs=2")), 0.98)


def float16(commands):
    return at_least(accuracy(commands.train(QUICKSTART, "cuda", "train.precision=float16")), 0.95)


def parity(precision, difference, limit):
    def run(commands):
        settings = STEPS + [f"train.precision={precision}"]
        cpu = losses(commands.train(QUICKSTART, "cpu", *settings))
        return at_most(difference(losses(commands.train(QUICKSTART, "cuda", *settings)), cpu), limit, "50 losses differ by")
    return run


def checkpoints(commands):
    whole = losses(commands.train(QUICKSTART, "cpu", *STEPS))[20:]
    texts = []
    for first, second in (("cpu", "cuda"), ("cuda", "cpu")):
        directory = commands.work / f"moved-{first}"
        commands.train(QUICKSTART, first, *STEPS, "train.max_steps=20", directory=directory)
        moved = commands.train(QUICKSTART, second, *STEPS, directory=commands.work / f"moved-{first}-on",
                               resume=directory / "checkpoints/last")
        texts.append(at_most(farthest(losses(moved), whole), 1e-3, f"{first} to {second}:"))
    return ", ".join(texts)


def staged(commands):
    alone = losses(commands.train(QUICKSTART, "cuda", *STEPS))
    together = losses(commands.train(QUICKSTART, "cuda", *STEPS, "cluster.communication=staged", ranks=2))
    return at_most(farthest(together, alone), 1e-3, "50 losses differ by")


def reproducible(commands):
    """Trains eight logical shards on 1 rank, and on 2 ranks of one GPU with and without `shard: gradients`."""
    settings = STEPS + ["strategy={reproducible: {shards: 8}}", "cluster.communication=staged"]
    ways = {"1 rank": (1, []), "2 ranks": (2, []), "2 ranks, shard: gradients": (2, ["strategy.shard=gradients"])}
    hashes = {}
    for way, (ranks, more) in ways.items():
        hashes[way] = commands.train(QUICKSTART, "cuda", *settings, *more, ranks=ranks)[-1]["weights_sha256"]
    return same_hashes(hashes)


def same_hashes(hashes):
    if len(set(hashes.values())) != 1:
        raise Failed("weights differ: " + ", ".join(f"{text[:12]} on {way}" for way, text in hashes.items()))
    return f"{', '.join(hashes)}: {next(iter(hashes.values()))[:12]}"


def determinism(commands):
    hashes = {}
    for way, graphs in {"one run": "true", "another": "true", "one without graphs": "false"}.items():
        events = commands.train(QUICKSTART, "cuda", *STEPS, "train.deterministic=true", f"train.cuda_graphs={graphs}")
        hashes[way] = events[-1]["weights_sha256"]
    return same_hashes(hashes)
