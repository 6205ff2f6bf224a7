"""Cases of ops that draw random numbers."""
import math

import numpy as np
import torch

from cases import Case


def philox(counter, key):
    """The block function Philox 4x32-10 of Salmon et al. (2011), after the paper."""
    counter, key = list(counter), list(key)
    for _ in range(10):
        low, high = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(high >> 32) ^ counter[1] ^ key[0], high & 0xFFFFFFFF,
                   (low >> 32) ^ counter[3] ^ key[1], low & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


def random_words(samples, step, seed, layer, purpose, count):
    """Random words, a row for each sample: trainctl's function of (seed, step, sample, layer, element)."""
    mixed = layer ^ (purpose * 0x85EBCA6B & 0xFFFFFFFF)
    words = np.empty((len(samples), count), np.int64)
    for row, sample in enumerate(samples.tolist()):
        for e in range(count):
            counter = (sample & 0xFFFFFFFF, (sample >> 32) ^ mixed, e // 4, step.item())
            words[row, e] = philox(counter, (seed & 0xFFFFFFFF, seed >> 32))[e % 4]
    return words


def randomness():
    for name in ("dropout", "spatial_dropout", "stochastic_depth", "gaussian_noise"):
        case, rate, seed, layer = Case(name), 0.375, 0x123456789, 77
        x = case.normal(3, 3, 7)
        samples, step = case.add(np.array([11, 0, 2**33 + 5], np.int64)), case.add(np.array(9, np.int64))
        purpose = 8 if name == "gaussian_noise" else 4
        words = random_words(samples, step, seed, layer, purpose, {"spatial_dropout": 7, "stochastic_depth": 1}.get(name, 21))
        uniform = torch.tensor((words >> 8) * 2.0**-24)
        if name == "gaussian_noise":
            case.record([x, samples, step], [x + 0.5 * math.sqrt(2) * torch.erfinv(2 * uniform + 2.0**-24 - 1).reshape(3, 3, 7)])
        else:
            mask = (uniform >= rate).double().reshape(3, -1, 1 if name == "stochastic_depth" else 7)
            case.record([x, samples, step], [x * mask / (1 - rate)])
