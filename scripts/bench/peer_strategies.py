"""Measures the same training step in PyTorch under one of its strategies, over Gloo, one process and one thread per rank.

Usage: peer_strategies.py NETWORK MODE RANKS SECONDS
NETWORK: wide-mlp or resnet20; MODE: ddp, zero1 (ZeroRedundancyOptimizer), fsdp2 (fully_shard that keeps parameters between
forward and backward), fsdp3 (fully_shard), pipeline (torch.distributed.pipelining, 1F1B, 8 micro-batches) or tensor (wide-mlp only:
parallelize_module, by columns and by rows in turn). A step has 128 samples.
Prints one JSON line: {"samples_per_second", "version"}.
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
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn import functional as F

from peer import Block, ResNet20

BATCH = 128
MICRO_BATCHES = 8


def wide_mlp():
    return nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(),
                         nn.Linear(2048, 10))


NETWORKS = {"wide-mlp": (wide_mlp, (1024,)), "resnet20": (ResNet20, (3, 32, 32))}
# The number of layers in the first of two stages, which has about half of the work.
FIRST_STAGE = {"wide-mlp": 4, "resnet20": 7}


def optimizer_of(network, model, mode):
    kind, options = (torch.optim.Adam, {"lr": 1e-3}) if network == "wide-mlp" else (torch.optim.SGD, {"lr": 0.01, "momentum": 0.9})
    if mode == "zero1":
        return ZeroRedundancyOptimizer(model.parameters(), kind, **options)
    return kind(model.parameters(), **options)


def sharded(model, mode):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    options = {"mesh": mesh, "reshard_after_forward": mode == "fsdp3"}
    for module in model.modules():
        if isinstance(module, (Block, nn.Linear)):
            fully_shard(module, **options)
    return fully_shard(model, **options)


def replica_step(network, mode, rank, ranks):
    make, shape = NETWORKS[network]
    model = make()
    share = BATCH // ranks
    if mode == "tensor":
        share = BATCH
        mesh = init_device_mesh("cpu", (ranks,))
        linear = [name for name, module in model.named_children() if isinstance(module, nn.Linear)]
        model = parallelize_module(model, mesh, {name: RowwiseParallel() if i % 2 else ColwiseParallel() for i, name in enumerate(linear)})
    elif mode.startswith("fsdp"):
        model = sharded(model, mode)
    else:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = optimizer_of(network, model, mode)
    images = torch.randn(share, *shape)
    labels = torch.randint(0, 10, (share,))

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def pipeline_step(network, rank):
    make, shape = NETWORKS[network]
    layers = list(make())
    cut = FIRST_STAGE[network]
    module = nn.Sequential(*(layers[:cut] if rank == 0 else layers[cut:]))
    stage = PipelineStage(module, rank, 2, torch.device("cpu"))
    schedule = Schedule1F1B(stage, n_microbatches=MICRO_BATCHES, loss_fn=F.cross_entropy)
    optimizer = optimizer_of(network, module, "pipeline")
    images = torch.randn(BATCH, *shape)
    labels = torch.randint(0, 10, (BATCH,))

    def step():
        optimizer.zero_grad(set_to_none=True)
        if rank == 0:
            schedule.step(images)
        else:
            schedule.step(target=labels)
        optimizer.step()

    return step


def rank_main(rank, network, mode, ranks, seconds):
    torch.set_num_threads(1)
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    torch.manual_seed(0)
    step = pipeline_step(network, rank) if mode == "pipeline" else replica_step(network, mode, rank, ranks)
    for _ in range(5):
        step()
    start = time.perf_counter()
    step()
    once = torch.tensor([time.perf_counter() - start])
    dist.all_reduce(once, dist.ReduceOp.MAX)
    times = []
    for _ in range(max(10, int(seconds / once.item()))):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    if rank == ranks - 1:
        print(json.dumps({"samples_per_second": BATCH / statistics.median(times), "version": torch.__version__}), flush=True)
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)  # a normal exit of the interpreter sometimes aborts in threads that Gloo has left


def main():
    network, mode, ranks, seconds = sys.argv[1:5]
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29518")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    mp.spawn(rank_main, (network, mode, int(ranks), float(seconds)), nprocs=int(ranks))


if __name__ == "__main__":
    main()
