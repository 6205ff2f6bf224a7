"""Trains the network of the campaign in PyTorch under torchrun, with checkpoints from which a restart goes on.

usage, as a worker of torchrun: elastic_peer.py FOLDER STEPS CHECKPOINT_EVERY
After each step rank 0 appends a line "STEP TIME" to FOLDER/steps. A worker goes on from FOLDER/checkpoint if it exists.
"""
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BATCH = 32


def network():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(8, 5))


def main(folder, steps, every):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    checkpoint, step = os.path.join(folder, "checkpoint"), 0
    if os.path.exists(checkpoint):
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
    parallel = DistributedDataParallel(model)
    images, labels = torch.randn(320, 3, 16, 16), torch.randint(5, (320,))
    while step < steps:
        own = (torch.arange(BATCH // ranks) + step * BATCH + rank * (BATCH // ranks)) % 320
        optimizer.zero_grad()
        nn.functional.cross_entropy(parallel(images[own]), labels[own]).backward()
        optimizer.step()
        step += 1
        if rank == 0:
            with open(os.path.join(folder, "steps"), "a", encoding="utf-8") as file:
                file.write(f"{step} {time.time()}\n")
        if step % every == 0 and rank == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, checkpoint + ".new")
            os.replace(checkpoint + ".new", checkpoint)
        time.sleep(0.005)  # so that the run is not over before a rank is killed
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
