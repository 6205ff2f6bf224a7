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

from peer_attention import median_ms
from peer_cuda import driver_version

TOKENS = 50257


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(width)
        self.c_attn = nn.Linear(width, 3 * width)
        self.attn_proj = nn.Linear(width, width)
        self.ln_2 = nn.LayerNorm(width)
        self.c_fc = nn.Linear(width, 4 * width)
        self.c_proj = nn.Linear(4 * width, width)

    def attention(self, x):
        batch, length, width = x.shape
        heads = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.c_attn(x).split(width, 2))
        return self.attn_proj(F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attention(self.ln_1(x))
        return x + self.c_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """Radford et al. (2019). The logits use the table of the tokens."""

    def __init__(self, positions=1024, layers=12, heads=12, width=768, tokens=TOKENS):
        super().__init__()
        self.wte = nn.Embedding(tokens, width)
        self.wpe = nn.Embedding(positions, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        for part in self.modules():
            if isinstance(part, (nn.Linear, nn.Embedding)):
                nn.init.normal_(part.weight, std=0.02)
            if isinstance(part, nn.Linear):
                nn.init.zeros_(part.bias)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)


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
