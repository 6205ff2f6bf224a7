"""Measures the same training step in PyTorch on one GPU.

Usage: peer_cuda.py NETWORK PRECISION BATCH MODE SECONDS   (MODE: eager or compiled)
Prints one JSON line: {"median_seconds", "samples_per_second", "reserved_bytes", "version", "cudnn", "driver"}. Batches are on the
GPU already, in the channels-last layout, and the host does not wait between steps. reserved_bytes is the largest value during
the measured steps. It excludes the workspaces of the warm-up, in which cuDNN's engines were tried. float32 is computed without TF32.
"""
import ctypes
import json
import statistics
import sys
import time

import torch
from torch.nn import functional as F

from peer import Mlp, ResNet20, ResNet50


NETWORKS = {"mlp": (Mlp, (1, 28, 28), 10), "resnet20": (ResNet20, (3, 32, 32), 10), "resnet50": (ResNet50, (3, 224, 224), 1000)}
DTYPES = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}


def driver_version():
    """Returns the version of the NVIDIA driver from NVML, or an empty text if it is not available."""
    text = ctypes.create_string_buffer(96)
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        known = nvml.nvmlInit_v2() == 0 and nvml.nvmlSystemGetDriverVersion(text, 96) == 0
    except (OSError, AttributeError):
        return ""
    return text.value.decode() if known else ""


def main():
    network, precision, batch, mode, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], float(sys.argv[5])
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    make, shape, classes = NETWORKS[network]
    model = make().cuda().to(memory_format=torch.channels_last)
    if mode == "compiled":
        model = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images = [torch.randn(batch, *shape, device="cuda").contiguous(memory_format=torch.channels_last) for _ in range(2)]
    labels = [torch.randint(0, classes, (batch,), device="cuda") for _ in range(2)]

    def step(i):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", DTYPES[precision], enabled=DTYPES[precision] is not None):
            loss = F.cross_entropy(model(images[i % 2]), labels[i % 2])
        loss.backward()
        optimizer.step()

    def timed(count):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for i in range(count):
            step(i)
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / count

    timed(10)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    once = timed(5)
    part = max(5, int(seconds / 5 / once))
    median = statistics.median(timed(part) for _ in range(5))
    print(json.dumps({"median_seconds": median, "samples_per_second": batch / median,
                      "reserved_bytes": torch.cuda.max_memory_reserved(), "version": torch.__version__,
                      "cudnn": torch.backends.cudnn.version(), "driver": driver_version()}))


if __name__ == "__main__":
    main()
