"""Measures the same training step in PyTorch: DistributedDataParallel over Gloo, one process and one thread per rank.

Usage: peer.py NETWORK PRECISION RANKS MODE SECONDS   (MODE: eager, compiled or first-step)
Images are classified by SGD with momentum, texts are continued by AdamW with gradients clipped to norm 1.
Prints one JSON line: {"median_seconds", "samples_per_second", "layout", "version"}. In the mode first-step it ends after one step.
"""
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn import functional as F

from gpt2_network import Gpt2, TOKENS

class Mlp(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))


class Cnn(nn.Sequential):
    """Keras' simple MNIST convnet."""

    def __init__(self):
        super().__init__(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Dropout(0.5), nn.Linear(1600, 10))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class ResNet20(nn.Sequential):
    """He et al. (2015) for CIFAR-10, with projection shortcuts if the shape changes."""

    def __init__(self):
        blocks = []
        inputs = 16
        for width in (16, 32, 64):
            for i in range(3):
                blocks.append(Block(inputs, width, 2 if width > 16 and i == 0 else 1))
                inputs = width
        super().__init__(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), *blocks,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        return F.relu(self.bn3(self.conv3(y)) + self.shortcut(x))


class ResNet50(nn.Sequential):
    """He et al. (2015) with the stride in the 3x3 convolution."""

    def __init__(self):
        blocks = []
        inputs = 64
        for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for i in range(count):
                blocks.append(Bottleneck(inputs, width, stride if i == 0 else 1))
                inputs = 4 * width
        super().__init__(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1), *blocks,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


IMAGES = {"mlp": (Mlp, (1, 28, 28)), "cnn": (Cnn, (1, 28, 28)), "resnet20": (ResNet20, (3, 32, 32)), "resnet50-cpu": (ResNet50, (3, 128, 128))}
TEXTS = {"gpt-10m": {"positions": 256, "layers": 6, "heads": 6, "width": 384, "tokens": 257},
         "gpt2-256": {"positions": 256, "layers": 12, "heads": 12, "width": 768, "tokens": TOKENS}}
BATCH = {"mlp": 64, "cnn": 64, "resnet20": 64, "resnet50-cpu": 4, "gpt-10m": 8, "gpt2-256": 2}  # samples of a rank


def network_of(name, layout):
    """Returns the network, its optimizer, the norm to clip gradients to (None: no clipping), and four batches of a rank."""
    samples = BATCH[name]
    if name in IMAGES:
        make, shape = IMAGES[name]
        model = make().to(memory_format=layout)
        batches = [(torch.randn(samples, *shape).contiguous(memory_format=layout), torch.randint(0, 10, (samples,)))
                   for _ in range(4)]
        return model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), None, batches
    options = TEXTS[name]
    model = Gpt2(**options)
    texts = [torch.randint(0, options["tokens"], (samples, options["positions"] + 1)) for _ in range(4)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1)
    return model, optimizer, 1, [(text[:, :-1], text[:, 1:]) for text in texts]


def measure(network, precision, ranks, compiled, layout, seconds):
    """Returns the median seconds of a step on this rank."""
    torch.manual_seed(0)
    model, optimizer, clip_norm, batches = network_of(network, layout)
    parameters = list(model.parameters())
    if ranks > 1:
        model = nn.parallel.DistributedDataParallel(model)
    if compiled:
        model = torch.compile(model)

    def step(i):
        inputs, targets = batches[i % 4]
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            loss = F.cross_entropy(model(inputs).flatten(0, -2), targets.flatten())
        loss.backward()
        if clip_norm is not None:
            nn.utils.clip_grad_norm_(parameters, clip_norm)
        optimizer.step()
        return loss.item()

    if seconds == 0:
        step(0)
        return 0.0
    for i in range(2):
        step(i)
    start = time.perf_counter()
    step(2)
    once = torch.tensor([time.perf_counter() - start])
    if ranks > 1:
        dist.all_reduce(once, dist.ReduceOp.MAX)
    if once.item() < 0.3:
        for i in range(8):
            step(i)
    times = []
    for i in range(max(5, int(seconds / once.item()))):
        start = time.perf_counter()
        step(i)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def rank_main(rank, network, precision, ranks, mode, seconds):
    torch.set_num_threads(1)
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    if ranks > 1:
        dist.init_process_group("gloo", rank=rank, world_size=ranks)
    layouts = [torch.contiguous_format] if network == "mlp" or network in TEXTS else [torch.contiguous_format, torch.channels_last]
    compiled = mode == "compiled"
    if mode == "first-step":
        measure(network, precision, ranks, False, layouts[0], 0)
        results = {layouts[0]: 0.0}
    else:
        results = {layout: measure(network, precision, ranks, compiled, layout, seconds / len(layouts)) for layout in layouts}
    if rank == 0:
        layout, median = min(results.items(), key=lambda item: item[1])
        speed = ranks * BATCH[network] / median if median else 0
        print(json.dumps({"median_seconds": median, "samples_per_second": speed, "layout": str(layout).split(".")[-1],
                          "version": torch.__version__}))
    if ranks > 1:
        dist.barrier()
        dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # a normal exit of the interpreter sometimes aborts in threads that Gloo has left


def main():
    network, precision, ranks, mode, seconds = sys.argv[1:6]
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29517")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    arguments = (network, precision, int(ranks), mode, float(seconds))
    if int(ranks) == 1:
        rank_main(0, *arguments)
    else:
        mp.spawn(rank_main, arguments, nprocs=int(ranks))


if __name__ == "__main__":
    main()
