"""Lists the rows in their order: rows with the most evidence come first."""
from . import checks, figures, fusion, tools
from .at_size import numbers
from .rows import Row

SECONDS = 596  # time of the whole script
# The limits of the first look and of all rows of first() or second() add up to less, so that each row always gets its full time.
FIRST_LOOK = Row("first look", 120, None)  # long, because the GPU's libraries may have to be read from disk


def first(ops_file):
    """The rows of a run without --second. `ops_file`: the file for the table of ops."""
    return [
        Row("resnet50", 100, figures.ours("resnet50"), False),
        Row("resnet50 ops", 25, figures.op_table(ops_file), False),
        Row("numbers at size", 55, numbers),
        Row("quickstart", 12, checks.quickstart),
        Row("parity float32", 10, checks.parity("float32", checks.farthest, 1e-3)),
        # bfloat16 rounds by 0.4 %, and the differences grow from step to step. On the CPU, 50 losses in bfloat16 differ from the
        # losses in float32 by at most 8 %, and by 0.7 % on average. The limit is three times this average, because two devices
        # round differently.
        Row("parity bfloat16", 10, checks.parity("bfloat16", checks.average, 2e-2)),
        Row("kernel tests", 180, checks.suite("test-cuda")),
        Row("staged", 18, checks.conformance("staged", 2)),
        Row("resnet50 eager", 55, figures.pytorch("resnet50", "eager"), False),
    ]


def second(kernels_file):
    """The rows of --second. `kernels_file`: the file for the profile of the slowest kernels."""
    return [
        Row("resnet50 compiled", 90, figures.pytorch("resnet50", "compiled"), False),
        Row("resnet50 deterministic", 40, figures.ours("resnet50", "train.deterministic=true"), False),
        Row("fused against unfused", 50, fusion.fused_against_unfused, False),
        Row("memcheck", 150, tools.sanitizer("memcheck")),
        Row("racecheck", 70, tools.sanitizer("racecheck")),
        Row("slowest kernels", 75, tools.slowest_kernels(kernels_file), False),
    ]


# Rows that run after first() or second(), if there is time.
FURTHER = [
    Row("nccl", 20, checks.conformance("nccl", 1)),
    Row("2 ranks staged", 25, checks.staged),
    Row("reproducible", 40, checks.reproducible),
    Row("checkpoints", 40, checks.checkpoints),
    Row("determinism", 35, checks.determinism),
    Row("resnet20", 40, figures.ours("resnet20"), False),
    Row("resnet20 eager", 40, figures.pytorch("resnet20", "eager"), False),
    Row("mlp", 30, figures.ours("mlp"), False),
    Row("mlp eager", 40, figures.pytorch("mlp", "eager"), False),
    Row("float16", 25, checks.float16),
    Row("mnist", 40, checks.mnist),
]
