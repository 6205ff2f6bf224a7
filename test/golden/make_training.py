#!/usr/bin/env python3
"""Writes training.safetensors: five small networks that PyTorch trains for 30 steps, in float64.

Run it like make_golden.py. For each NETWORK the file has NETWORK/inputs, NETWORK/targets and NETWORK/weights of the
samples (five batches of twelve, which are used repeatedly), NETWORK/before/NAME and NETWORK/after/NAME of parameters
and running statistics, and NETWORK/losses, the mean loss of each step's batch before its update.
test/core/ops/training_test.cpp has the networks and optimizers as a user writes them.
"""
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file

from cases import bfloat16
from windows import conv2d

batch, batches, steps, classes = 12, 5, 30, 3
values = {}


def glorot(random, *shape):
    receptive = np.prod(shape[:-2])
    limit = np.sqrt(6 / (receptive * (shape[-2] + shape[-1])))
    return random.uniform(-limit, limit, shape)


def mlp_parameters(random):
    sizes = {"first": (128, 24), "second": (24, 16), "predictions": (16, classes)}
    for name, (inputs, units) in sizes.items():
        yield f"{name}/kernel", glorot(random, inputs, units)
        yield f"{name}/bias", random.standard_normal(units) * 0.1


def mlp(p, x, _):
    x = x.reshape(batch, -1)
    x = F.gelu(x @ p["first/kernel"] + p["first/bias"])
    x = torch.tanh(x @ p["second/kernel"] + p["second/bias"])
    return x @ p["predictions/kernel"] + p["predictions/bias"]


norms = {"stay/bn1": 8, "stay/bn2": 8, "shrink/bn1": 12, "shrink/bn2": 12, "shrink/shortcut/bn": 12}


def cnn_parameters(random):
    kernels = {"stem/kernel": (3, 3, 2, 8), "stay/conv1/kernel": (3, 3, 8, 8), "stay/conv2/kernel": (3, 3, 8, 8),
               "shrink/conv1/kernel": (3, 3, 8, 12), "shrink/conv2/kernel": (3, 3, 12, 12),
               "shrink/shortcut/conv/kernel": (1, 1, 8, 12), "predictions/kernel": (12, classes)}
    for name, shape in kernels.items():
        yield name, glorot(random, *shape)
    for name, channels in norms.items():
        yield f"{name}/gamma", random.uniform(0.75, 1.25, channels)
        yield f"{name}/beta", random.standard_normal(channels) * 0.1
    yield "stem/bias", random.standard_normal(8) * 0.1
    yield "predictions/bias", random.standard_normal(classes) * 0.1


def cnn(p, x, statistics):
    def norm(name, x):
        for key, value in (("moving_mean", x.mean((0, 1, 2))), ("moving_variance", x.var((0, 1, 2), unbiased=False))):
            statistics[f"{name}/{key}"] = 0.9 * statistics[f"{name}/{key}"] + 0.1 * value.detach()
        y = F.batch_norm(x.movedim(-1, 1), None, None, p[f"{name}/gamma"], p[f"{name}/beta"], True, 0.0, 1e-3)
        return y.movedim(1, -1)

    def branch(name, x, stride):
        x = F.relu(norm(f"{name}/bn1", conv2d(x, p[f"{name}/conv1/kernel"], strides=(stride, stride))))
        return norm(f"{name}/bn2", conv2d(x, p[f"{name}/conv2/kernel"]))

    x = F.relu(conv2d(x, p["stem/kernel"], p["stem/bias"]))
    x = F.relu(x + branch("stay", x, 1))
    shortcut = norm("shrink/shortcut/bn", conv2d(x, p["shrink/shortcut/conv/kernel"], strides=(2, 2), padding="valid"))
    x = F.relu(shortcut + branch("shrink", x, 2))
    x = F.max_pool2d(x.movedim(-1, 1), 2).mean((2, 3))
    return x @ p["predictions/kernel"] + p["predictions/bias"]


def cnn_statistics():
    for name, channels in norms.items():
        yield f"{name}/moving_mean", torch.zeros(channels, dtype=torch.float64)
        yield f"{name}/moving_variance", torch.ones(channels, dtype=torch.float64)


def shared_parameters(random):
    kernels = {"stem/kernel": (3, 3, 2, 6), "again/kernel": (3, 3, 6, 6), "mix/kernel": (6, 6),
               "predictions/kernel": (6, classes)}
    for name, shape in kernels.items():
        yield name, glorot(random, *shape)
        yield name.replace("kernel", "bias"), random.standard_normal(shape[-1]) * 0.1
    yield "bn/gamma", random.uniform(0.75, 1.25, 6)
    yield "bn/beta", random.standard_normal(6) * 0.1


def shared(p, x, statistics):
    """One convolution is used three times, one batch normalisation and one dense layer twice."""
    def norm(x):
        for key, value in (("moving_mean", x.mean((0, 1, 2))), ("moving_variance", x.var((0, 1, 2), unbiased=False))):
            statistics[f"bn/{key}"] = 0.9 * statistics[f"bn/{key}"] + 0.1 * value.detach()
        return F.batch_norm(x.movedim(-1, 1), None, None, p["bn/gamma"], p["bn/beta"], True, 0.0, 1e-3).movedim(1, -1)

    x = F.relu(conv2d(x, p["stem/kernel"], p["stem/bias"]))
    for _ in range(2):
        x = F.relu(norm(conv2d(x, p["again/kernel"], p["again/bias"])))
    x = F.max_pool2d(x.movedim(-1, 1), 2).movedim(1, -1)
    x = conv2d(x, p["again/kernel"], p["again/bias"]).mean((1, 2))
    for _ in range(2):
        x = torch.tanh(x @ p["mix/kernel"] + p["mix/bias"])
    return x @ p["predictions/kernel"] + p["predictions/bias"]


def frozen_parameters(random):
    kernels = {"base/kernel": (3, 3, 2, 6), "stem/kernel": (3, 3, 6, 6), "block/conv/kernel": (3, 3, 6, 6),
               "predictions/kernel": (6, classes)}
    for name, shape in kernels.items():
        yield name, glorot(random, *shape)
    yield "base/bias", random.standard_normal(6) * 0.1
    yield "predictions/bias", random.standard_normal(classes) * 0.1
    for name in ("bn", "block/bn", "live"):
        yield f"{name}/gamma", random.uniform(0.75, 1.25, 6)
        yield f"{name}/beta", random.standard_normal(6) * 0.1


def frozen_statistics(random):
    for name in ("bn", "block/bn", "live"):
        yield f"{name}/moving_mean", torch.tensor(np.float32(random.standard_normal(6) * 0.2), dtype=torch.float64)
        yield f"{name}/moving_variance", torch.tensor(np.float32(random.uniform(0.5, 2, 6)), dtype=torch.float64)


def is_frozen(key):
    return key.split("/")[0] in ("base", "bn", "block")


def frozen(p, x, statistics):
    """Layers before and after the trained ones are frozen, with batch normalisations in eval mode."""
    def norm(name, x):
        gamma, beta = p[f"{name}/gamma"], p[f"{name}/beta"]
        mean, variance = statistics[f"{name}/moving_mean"], statistics[f"{name}/moving_variance"]
        if is_frozen(name):
            return F.batch_norm(x.movedim(-1, 1), mean, variance, gamma, beta, False, 0.0, 1e-3).movedim(1, -1)
        for key, value in (("moving_mean", x.mean((0, 1, 2))), ("moving_variance", x.var((0, 1, 2), unbiased=False))):
            statistics[f"{name}/{key}"] = 0.9 * statistics[f"{name}/{key}"] + 0.1 * value.detach()
        return F.batch_norm(x.movedim(-1, 1), None, None, gamma, beta, True, 0.0, 1e-3).movedim(1, -1)

    x = F.relu(conv2d(x, p["base/kernel"], p["base/bias"]))
    x = F.relu(norm("bn", conv2d(x, p["stem/kernel"])))
    x = F.relu(x + norm("block/bn", conv2d(x, p["block/conv/kernel"])))
    x = norm("live", x).mean((1, 2))
    return x @ p["predictions/kernel"] + p["predictions/bias"]


def no_penalty(p):
    return 0


def penalty(p):
    """Penalties on the first kernel and bias, and on the second kernel. The recorded losses do not include them."""
    first = 0.003 * p["first/kernel"].abs().sum() + 0.01 * (p["first/bias"] ** 2).sum()
    return first + (0.002 * p["second/kernel"].abs() + 0.02 * p["second/kernel"] ** 2).sum()


def clip_all(clip):
    return lambda p: torch.nn.utils.clip_grad_norm_(p.values(), clip)


def centralize_and_clip_each(p):
    """Keras' gradient centralization, and clipnorm 0.1 for each parameter by itself."""
    for value in p.values():
        if value.dim() > 1:
            value.grad -= value.grad.mean(tuple(range(value.dim() - 1)), keepdim=True)
        value.grad *= 0.1 / max(0.1, value.grad.norm().item())


def clip_elements(p):
    torch.nn.utils.clip_grad_value_(p.values(), 0.01)


def train(name, parameters, statistics, network, make_optimizer, change_gradients, smoothing, seed, penalty=no_penalty,
          freezes=lambda key: False):
    random = np.random.Generator(np.random.PCG64(seed))
    targets = random.integers(0, classes, batch * batches, dtype=np.int32)
    patterns = random.standard_normal((classes, 8, 8, 2))
    inputs = bfloat16(0.5 * patterns[targets] + random.standard_normal((batch * batches, 8, 8, 2)))
    weights = np.ones(batch * batches)
    weights[17] = 0  # a skipped sample
    p = {key: torch.tensor(np.float32(value), dtype=torch.float64, requires_grad=not freezes(key))
         for key, value in parameters(random)}
    for key, value in {**p, **statistics}.items():
        values[f"{name}/before/{key}"] = value.detach().numpy().astype(np.float32)
    optimizer = make_optimizer(p)
    losses = []
    for step in range(steps):
        part = slice(step % batches * batch, (step % batches + 1) * batch)
        logits = network(p, torch.tensor(inputs[part]), statistics)
        loss = F.cross_entropy(logits, torch.tensor(targets[part]).long(), reduction="none", label_smoothing=smoothing)
        weight = torch.tensor(weights[part])
        loss = (loss * weight).sum() / weight.sum()
        optimizer.zero_grad()
        (loss + penalty(p)).backward()
        change_gradients(p)
        optimizer.step()
        losses.append(loss.item())
    for key, value in {**p, **statistics}.items():
        values[f"{name}/after/{key}"] = value.detach().numpy().astype(np.float32)
    values[f"{name}/inputs"], values[f"{name}/targets"] = inputs.astype(np.float32), targets
    values[f"{name}/weights"], values[f"{name}/losses"] = weights.astype(np.float32), np.float32(losses)
    print(f"{name}: loss {losses[0]:.4f} to {losses[-1]:.4f}")


def adamw(p):
    groups = [dict(params=[v for k, v in p.items() if k.endswith("kernel")], weight_decay=0.02),
              dict(params=[v for k, v in p.items() if k.endswith("bias")], weight_decay=0.0)]
    return torch.optim.AdamW(groups, lr=0.005, eps=1e-7)


def sgd(p, rate=0.05):
    return torch.optim.SGD(p.values(), lr=rate, momentum=0.9, nesterov=True, weight_decay=1e-3)


if __name__ == "__main__":
    train("mlp", mlp_parameters, {}, mlp, adamw, clip_all(1.0), smoothing=0.0, seed=1)
    train("cnn", cnn_parameters, dict(cnn_statistics()), cnn, sgd, clip_all(1.0), smoothing=0.1, seed=2)
    statistics = {f"bn/{key}": torch.full((6,), value, dtype=torch.float64)
                  for key, value in (("moving_mean", 0.0), ("moving_variance", 1.0))}
    train("shared", shared_parameters, statistics, shared, sgd, clip_all(1.0), smoothing=0.0, seed=3)
    train("penalized", mlp_parameters, {}, mlp, sgd, clip_all(1.0), smoothing=0.0, seed=4, penalty=penalty)
    statistics = dict(frozen_statistics(np.random.Generator(np.random.PCG64(6))))
    train("frozen", frozen_parameters, statistics, frozen, lambda p: sgd(p, 0.2), clip_all(1.0), smoothing=0.0, seed=5,
          freezes=is_frozen)
    train("centralized", cnn_parameters, dict(cnn_statistics()), cnn, lambda p: sgd(p, 0.1), centralize_and_clip_each,
          smoothing=0.0, seed=7)
    train("limited", mlp_parameters, {}, mlp, sgd, clip_elements, smoothing=0.0, seed=8)
    save_file(values, pathlib.Path(__file__).parent / "training.safetensors")
