"""Measures causal attention in PyTorch on one GPU, in bfloat16: forward, and the gradients of queries, keys and values.

Usage: peer_attention.py BATCH HEADS LENGTH SIZE SECONDS
Prints one JSON line: {"kernels", "version", "cudnn"}. "kernels" has an object for "cudnn" (the graph of cuDNN) and for "flash" (the
kernel of PyTorch): {"forward_ms", "backward_ms"}, the medians of calls that the host queues one after the other, or {"why"} if PyTorch
cannot use the kernel.
"""
import json
import statistics
import sys
import time

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel


def median_ms(call, seconds):
    """Returns the median time of a call in five series, which take `seconds` together."""
    def series(count):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            call()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / count

    series(10)
    part = max(5, int(seconds / 5 / series(20)))
    return 1e3 * statistics.median(series(part) for _ in range(5))


def measure(backend, shape, seconds):
    query, key, value = (torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
    gradient = torch.randn(shape, device="cuda", dtype=torch.bfloat16)
    with sdpa_kernel(backend):
        def forward():
            return F.scaled_dot_product_attention(query, key, value, is_causal=True)

        output = forward()
        forward_ms = median_ms(forward, seconds / 2)
        backward_ms = median_ms(lambda: torch.autograd.grad(output, (query, key, value), gradient, retain_graph=True), seconds / 2)
    return {"forward_ms": forward_ms, "backward_ms": backward_ms}


def main():
    batch, heads, length, size = map(int, sys.argv[1:5])
    seconds = float(sys.argv[5]) / 2
    torch.manual_seed(0)
    kernels = {}
    for name, backend in (("cudnn", SDPBackend.CUDNN_ATTENTION), ("flash", SDPBackend.FLASH_ATTENTION)):
        try:
            kernels[name] = measure(backend, (batch, heads, length, size), seconds)
        except RuntimeError as error:
            kernels[name] = {"why": str(error).splitlines()[0]}
    print(json.dumps({"kernels": kernels, "version": torch.__version__, "cudnn": torch.backends.cudnn.version()}))


if __name__ == "__main__":
    main()
