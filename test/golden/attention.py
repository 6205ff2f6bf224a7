"""Cases of attention: q, k and v with heads side by side, or packed; masks; documents."""
import numpy as np
import torch
import torch.nn.functional as F

from cases import Case


def heads_apart(x, heads):
    """(samples, positions, columns) as (samples, heads, positions, head size)."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def seen(queries, keys, causal=False, window=0):
    """Which keys each query sees by the order of positions."""
    distance = torch.arange(queries)[:, None] - torch.arange(keys)
    allowed = torch.ones(queries, keys, dtype=torch.bool)
    if causal:
        allowed &= distance >= 0
    if window:
        allowed &= distance.abs() < window
    return allowed


def attention():
    def attend(name, heads=4, key_heads=4, size=6, value_size=0, queries=9, keys=0, causal=False, window=0, masked=False,
               documents=False, packed=False):
        case = Case(f"attention_{name}")
        samples, keys, value_size = 2, keys or queries, value_size or size
        if packed:
            group = heads // key_heads
            operands = [case.normal(samples, queries, key_heads * (group + 2) * size)]
            parts = operands[0].unflatten(-1, (key_heads, group + 2, size))
            q = parts[..., :group, :].flatten(2, 3).transpose(1, 2)
            k, v = (parts[..., place, :].transpose(1, 2) for place in (group, group + 1))
        else:
            operands = [case.normal(samples, queries, heads * size), case.normal(samples, keys, key_heads * size),
                        case.normal(samples, keys, key_heads * value_size)]
            q, k, v = (heads_apart(x, n) for x, n in zip(operands, (heads, key_heads, key_heads)))
        allowed = seen(queries, keys, causal, window).expand(samples, 1, queries, keys)
        if masked:
            mask = case.integers(samples, keys, bound=2, dtype=np.uint8)
            mask[:, 0] = 1  # with a causal mask, each query sees a key
            operands.append(mask)
            allowed = allowed & (mask != 0)[:, None, None, :]
        if documents:
            numbers = case.integers(samples, queries, bound=3).sort(-1).values
            operands.append(numbers)
            allowed = allowed & (numbers[:, None, :, None] == numbers[:, None, None, :])
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, enable_gqa=True)
        case.record(operands, [y.transpose(1, 2).flatten(2)])

    attend("plain")
    attend("causal", causal=True)
    attend("grouped", key_heads=2, causal=True)
    attend("one_key_head", key_heads=1, size=8)
    attend("window", window=3)
    attend("causal_window", causal=True, window=4)
    attend("mask", masked=True, keys=13)
    attend("causal_mask", masked=True, causal=True)
    attend("documents", documents=True, causal=True)
    attend("packed", packed=True, causal=True)
    attend("packed_grouped", packed=True, key_heads=2)
    attend("wide_values", value_size=10, keys=7)


def additive_attention():
    def attend(name, size=5, value_size=7, queries=4, keys=6, weights=0, causal=False, masked=False):
        case = Case(f"additive_attention{name}")
        operands = [case.normal(3, queries, size), case.normal(3, keys, size), case.normal(3, keys, value_size)]
        q, k, v = operands
        allowed = seen(queries, keys, causal).expand(3, queries, keys)
        if masked:
            mask = case.integers(3, keys, bound=2, dtype=np.uint8)
            mask[:, 0] = 1  # with a causal mask, each query sees a key
            operands.append(mask)
            allowed = allowed & (mask != 0)[:, None, :]
        tangents = torch.tanh(q[:, :, None] + k[:, None])
        if weights:
            operands.append(case.normal(weights, scale=2 / np.sqrt(weights)))
            tangents = tangents * operands[-1]
        scores = tangents.sum(-1).masked_fill(~allowed, -torch.inf)
        case.record(operands, [scores.softmax(-1) @ v])

    attend("")
    attend("_weighted", weights=5)
    attend("_one_weight", weights=1)
    attend("_wide", size=40, value_size=300, queries=3, keys=5, weights=40)
    attend("_long", queries=5, keys=300, weights=5)
    attend("_causal_mask", queries=6, weights=5, causal=True, masked=True)
