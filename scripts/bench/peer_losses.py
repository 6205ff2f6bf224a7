"""Computes losses and gradient norms of a network in PyTorch, from the weights of a trainctl checkpoint and on the same batches.

Usage: peer_losses.py NETWORK LAYERS WEIGHTS SAMPLES BATCH STEPS SKIP RATE
NETWORK: mlp, resnet20 or resnet50; LAYERS: the output of `trainctl check --json` for the config; WEIGHTS: weights.safetensors; SAMPLES: a
folder with x.npy (bytes) and y.npy. Takes STEPS steps of SGD without momentum at the learning rate RATE. The batches follow the
order of the samples, start with batch number SKIP, and begin again after the last sample. Computes in TF32 on a GPU, otherwise in float32.
Prints one JSON line: {"losses", "gradient_norms"}; the norm is the norm of the batch's mean gradient over all parameters.
"""
import json
import pathlib
import struct
import sys

import numpy
import torch
from torch import nn
from torch.nn import functional as F

from peer_cuda import NETWORKS


def read_safetensors(path):
    """Returns the float32 tensors of a file. Key: the tensor's name."""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            assert entry["dtype"] == "F32", f"{name} is {entry['dtype']}"
            begin, end = entry["data_offsets"]
            tensors[name] = torch.frombuffer(bytearray(data[8 + size + begin : 8 + size + end]), dtype=torch.float32).reshape(entry["shape"])
    return tensors


def load(model, layers, tensors):
    """Copies the weights of trainctl's layers to the model's layers in their order. The layouts of the weights differ."""
    ours = [layer["name"] for layer in layers if layer["kind"] in ("conv2d", "batch_normalization", "dense")]
    theirs = [module for module in model.modules() if isinstance(module, (nn.Conv2d, nn.BatchNorm2d, nn.Linear))]
    assert len(ours) == len(theirs), f"{len(ours)} layers with weights here, {len(theirs)} in PyTorch"
    with torch.no_grad():
        for name, module in zip(ours, theirs):
            if isinstance(module, nn.BatchNorm2d):
                module.weight.copy_(tensors.pop(f"{name}/gamma"))
                module.bias.copy_(tensors.pop(f"{name}/beta"))
                continue
            kernel = tensors.pop(f"{name}/kernel")
            module.weight.copy_(kernel.permute(3, 2, 0, 1) if kernel.dim() == 4 else kernel.t())
            if module.bias is not None:
                module.bias.copy_(tensors.pop(f"{name}/bias"))
    left = [name for name in tensors if "/moving_" not in name]
    assert not left, f"tensors without a counterpart in PyTorch: {left}"


def main():
    network, layers, weights, samples = sys.argv[1:5]
    batch, steps, skip, rate = int(sys.argv[5]), int(sys.argv[6]), int(sys.argv[7]), float(sys.argv[8])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    model = NETWORKS[network][0]()
    load(model, json.loads(pathlib.Path(layers).read_text())["layers"], read_safetensors(weights))
    model = model.to(device).train()
    x, y = (numpy.load(pathlib.Path(samples) / name) for name in ("x.npy", "y.npy"))
    losses, norms = [], []
    for step in range(skip, skip + steps):
        begin = step * batch % len(x)
        images = torch.from_numpy(x[begin : begin + batch]).to(device).permute(0, 3, 1, 2).float() / 255
        loss = F.cross_entropy(model(images), torch.from_numpy(y[begin : begin + batch]).to(device).long())
        model.zero_grad(set_to_none=True)
        loss.backward()
        norms.append(float(torch.sqrt(sum((p.grad.double() ** 2).sum() for p in model.parameters()))))
        losses.append(float(loss))
        with torch.no_grad():
            for p in model.parameters():
                p -= rate * p.grad
    print(json.dumps({"losses": losses, "gradient_norms": norms}))


if __name__ == "__main__":
    main()
