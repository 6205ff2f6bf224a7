"""Measures a training step of GPT-2 small in PyTorch on one GPU: bfloat16, AdamW, gradients clipped to norm 1, no dropout.

Usage: peer_gpt2.py BATCH LENGTH MODE SECONDS   (MODE: eager or compiled)
Prints one JSON line with the fields of peer_cuda.py; a sample is a text of LENGTH tokens. The tokens are on the GPU already, and the host
does not wait between steps.
"""
import json
import sys

import torch
from torch import nn
from torch.nn import functional as F

from gpt2_network import Gpt2, TOKENS
from peer_attention import median_ms
from peer_cuda import driver_version


def main():
    batch, length, mode, seconds = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    network = Gpt2(length).cuda()
    model = torch.compile(network) if mode == "compiled" else network
    optimizer = torch.optim.AdamW(network.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    texts = [torch.randint(0, TOKENS, (batch, length + 1), device="cuda") for _ in range(2)]
    number = 0

    def step():
        nonlocal number
        text = texts[number % 2]
        number += 1
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1)
        optimizer.step()

    for _ in range(5):
        step()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    median = median_ms(step, seconds) / 1e3
    print(json.dumps({"median_seconds": median, "samples_per_second": batch / median,
                      "reserved_bytes": torch.cuda.max_memory_reserved(), "version": torch.__version__,
                      "cudnn": torch.backends.cudnn.version(), "driver": driver_version()}))


if __name__ == "__main__":
    main()
