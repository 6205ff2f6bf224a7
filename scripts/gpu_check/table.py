"""Lists the rows in their order, with the sources that their results depend on: rows with the most new evidence come first."""
from . import checks, figures, fusion, gpt2, nccl, suite, tools
from .at_size import numbers
from .rows import Row

SECONDS = 596  # time of the whole script
# The limits of the first look and of all rows of first() or second() add up to less, so that each row always gets its full time.
FIRST_LOOK = Row("first look", 20, None)

# The sources of the results (see sources.py). A row on a GPU does not depend on the CPU's kernels, on hosts or on the plan.
KERNELS = ("core/*", "!core/backend/cpu/*", "CMakeLists.txt", "cmake/cuda.cmake")
TRAINING = (*KERNELS, "parallel/*", "!parallel/health/*", "!parallel/launch/*", "!parallel/plan/*", "io/datasets/*", "io/loader/*",
            "run/job/*", "scripts/gpu_check/checks.py", "configs/quickstart.yaml", "configs/data/*")
CPU_TOO = tuple(pattern for pattern in TRAINING if pattern != "!core/backend/cpu/*")
CHECKPOINTS = (*CPU_TOO, "io/checkpoint/*")
RANKS = (*KERNELS, "parallel/comm/*", "test/mpi/main.cpp", "test/parallel/comm/conformance.*", "test/core/exec/collective_networks.*")
CASES = (*KERNELS, "test/cuda/*", "test/core/backend/*", "test/core/ops/*", "test/golden/*")
PEER = ("scripts/bench/peer.py", "scripts/bench/peer_cuda.py", "scripts/gpu_check/figures.py")


STEP = (*KERNELS, "parallel/trainer/*", "parallel/bench/*", "scripts/gpu_check/figures.py")  # a measured step of trainctl


def bench(network):
    return (*STEP, f"scripts/bench/configs/{network}.yaml")


def first(kernels_file):
    """The rows of a run without --second. `kernels_file`: the file for the profile of kernels."""
    return [
        Row("nccl 2 ranks", 90, nccl.two_ranks, True, (*TRAINING, *RANKS, "scripts/gpu_check/nccl.py")),
        *gpt2.rows(STEP),
        Row("resnet50", 60, figures.ours("resnet50"), False, bench("resnet50")),
        Row("four kernels", 60, tools.four_kernels(kernels_file), False, (*bench("resnet50"), "scripts/gpu_check/tools.py")),
        Row("float16 patterns", 50, fusion.fused_against_unfused("float16"), False, (*KERNELS, "test/cuda/*")),
        Row("kernel tests", 90, suite.suite("test-cuda"), True, CASES),
    ]


def second():
    """The rows of --second."""
    return [
        Row("resnet50 compiled", 90, figures.pytorch("resnet50", "compiled"), False, PEER),
        Row("resnet50 deterministic", 40, figures.ours("resnet50", "train.deterministic=true"), False, bench("resnet50")),
        Row("fused against unfused", 50, fusion.fused_against_unfused("bfloat16"), False, (*KERNELS, "test/cuda/*")),
        Row("memcheck", 150, tools.sanitizer("memcheck"), True, (*CASES, "scripts/gpu_check/tools.py")),
        Row("racecheck", 70, tools.sanitizer("racecheck"), True, (*CASES, "scripts/gpu_check/tools.py")),
    ]


def further(ops_file, gpt2_file):
    """Rows that run after first() or second(), if there is time. The files: for the tables of ops of ResNet-50 and of GPT-2."""
    return [
        Row("quickstart", 12, checks.quickstart, True, TRAINING),
        Row("parity float32", 10, checks.parity("float32", checks.farthest, 1e-3), True, CPU_TOO),
        # bfloat16 rounds by 0.4 %, and the differences grow from step to step. On the CPU, 50 losses in bfloat16 differ from the
        # losses in float32 by at most 8 %, and by 0.7 % on average. The limit is three times this average, because two devices
        # round differently.
        Row("parity bfloat16", 10, checks.parity("bfloat16", checks.average, 2e-2), True, CPU_TOO),
        Row("numbers at size", 55, numbers, True,
            (*TRAINING, "io/checkpoint/*", "scripts/bench/peer_losses.py", "scripts/bench/peer_cuda.py", "scripts/bench/configs/resnet50.yaml",
             "scripts/gpu_check/at_size.py")),
        Row("staged", 18, checks.conformance("staged", 2), True, RANKS),
        Row("resnet50 ops", 25, figures.op_table(ops_file), False, bench("resnet50")),
        *gpt2.further(gpt2_file, STEP),
        Row("resnet50 eager", 55, figures.pytorch("resnet50", "eager"), False, PEER),
        Row("nccl", 20, checks.conformance("nccl", 1), True, RANKS),
        Row("2 ranks staged", 25, checks.staged, True, TRAINING),
        Row("reproducible", 40, checks.reproducible, True, TRAINING),
        Row("checkpoints", 40, checks.checkpoints, True, CHECKPOINTS),
        Row("determinism", 35, checks.determinism, True, TRAINING),
        Row("resnet20", 40, figures.ours("resnet20"), False, bench("resnet20")),
        Row("resnet20 eager", 40, figures.pytorch("resnet20", "eager"), False, PEER),
        Row("mlp", 30, figures.ours("mlp"), False, bench("mlp")),
        Row("mlp eager", 40, figures.pytorch("mlp", "eager"), False, PEER),
        Row("float16", 25, checks.float16, True, TRAINING),
        Row("mnist", 40, checks.mnist, True, (*TRAINING, "configs/mnist-cnn.yaml")),
    ]
