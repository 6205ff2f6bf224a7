#!/usr/bin/env python3
"""Makes test/golden/pretrained: one small network's weights as PyTorch and Keras save them, its outputs, and the names and
shapes of the tensors of torchvision's, timm's and Keras' networks. Needs torch, torchvision, timm, keras, h5py, safetensors.

    KERAS_BACKEND=torch python3 test/golden/pretrained.py
"""
import collections
import hashlib
import os
import pathlib

os.environ.setdefault("KERAS_BACKEND", "torch")
import h5py
import keras
import numpy as np
import timm
import torch
import torchvision
from keras import layers
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch
from torch import nn

folder = pathlib.Path(__file__).parent / "pretrained"
folder.mkdir(exist_ok=True)
rng = np.random.default_rng(14)


def torch_network():
    """A network with names that a user of PyTorch would give: a Sequential of features and one for the head."""
    features = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 12, 3, groups=6, bias=False),
                             nn.BatchNorm2d(12), nn.PReLU(12), nn.MaxPool2d(2), nn.Conv2d(12, 8, 1, groups=2),
                             nn.ConvTranspose2d(8, 4, 2, stride=2))
    head = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(8 * 6 * 4), nn.Linear(8 * 6 * 4, 7), nn.ReLU(), nn.Linear(7, 5),
                         nn.Softmax(1))
    return nn.Sequential(collections.OrderedDict(features=features, head=head))


def keras_network():
    return keras.Sequential([
        layers.Input((10, 8, 3)),
        layers.Conv2D(6, 3, padding="same", activation="relu", name="c1"),
        layers.DepthwiseConv2D(3, depth_multiplier=2, use_bias=False, name="dw"),
        layers.BatchNormalization(epsilon=1e-5, name="bn"),
        layers.PReLU(shared_axes=[1, 2], name="slope"),
        layers.MaxPooling2D(2),
        layers.Conv2D(8, 1, groups=2, name="c2"),
        layers.Conv2DTranspose(4, 2, strides=2, name="up"),
        layers.Flatten(),
        layers.BatchNormalization(epsilon=1e-5, name="norm"),
        layers.Dense(7, activation="relu", name="hidden"),
        layers.Dense(5, activation="softmax", name="predictions"),
    ], name="small")


def chw_to_hwc(values):
    return values.reshape(4, 8, 6, -1).transpose(1, 2, 0, 3).reshape(192, -1)


def logical(state):
    """PyTorch's tensors under Keras' names, in Keras' layouts."""
    def norm(torch_name, name, order=lambda v: v):
        leaves = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_variance"}
        return {f"{name}/{ours}": order(state[f"{torch_name}.{theirs}"]) for theirs, ours in leaves.items()}
    kernel = lambda name: state[name].transpose(2, 3, 1, 0)
    return {
        "c1/kernel": kernel("features.0.weight"), "c1/bias": state["features.0.bias"],
        "dw/depthwise_kernel": kernel("features.2.weight").reshape(3, 3, 6, 2),
        **norm("features.3", "bn"),
        "slope/alpha": state["features.4.weight"].reshape(1, 1, 12),
        "c2/kernel": kernel("features.6.weight"), "c2/bias": state["features.6.bias"],
        "up/kernel": kernel("features.7.weight"), "up/bias": state["features.7.bias"],
        **norm("head.1", "norm", lambda v: chw_to_hwc(v).reshape(192)),
        "hidden/kernel": chw_to_hwc(state["head.2.weight"].T), "hidden/bias": state["head.2.bias"],
        "predictions/kernel": state["head.4.weight"].T, "predictions/bias": state["head.4.bias"],
    }


def weights_sha256(weights):
    hash = hashlib.sha256()
    for name in sorted(weights, key=str.encode):
        hash.update(name.encode() + b"\0" + np.ascontiguousarray(weights[name], "<f4").tobytes())
    return hash.hexdigest()


def small_network():
    network = torch_network().eval()
    state = network.state_dict()
    for name, tensor in state.items():
        if tensor.dtype == torch.float32:
            values = rng.uniform(0.5, 1.5, tensor.shape) if "var" in name else rng.normal(0, 0.3, tensor.shape)
            tensor.copy_(torch.from_numpy(values.astype(np.float32)))
    arrays = {name: tensor.numpy() for name, tensor in state.items()}
    x = rng.normal(0, 1, (4, 10, 8, 3)).astype(np.float32)
    with torch.no_grad():
        y = network(torch.from_numpy(x.transpose(0, 3, 1, 2).copy())).numpy()

    weights = logical(arrays)
    model = keras_network()
    for layer in model.layers:
        own = [weights[f"{layer.name}/{leaf}"] for leaf in
               ("depthwise_kernel", "kernel", "alpha", "gamma", "beta", "moving_mean", "moving_variance", "bias")
               if f"{layer.name}/{leaf}" in weights]
        if own:
            layer.set_weights(own)
    assert np.allclose(model.predict(x, verbose=0), y, rtol=1e-4, atol=1e-6)
    model.compile("adam", "mse")  # so that the files hold an optimizer's state, too
    model.optimizer.build(model.trainable_variables)

    save_file(arrays, folder / "small.safetensors")
    for dtype, name in ((torch.float16, "float16"), (torch.bfloat16, "bfloat16"), (torch.float64, "float64")):
        rounded = {k: v.to(dtype) for k, v in state.items() if k.startswith("features") and v.is_floating_point()}
        save_torch(rounded, folder / f"{name}.safetensors")
        save_torch({k: v.float() for k, v in rounded.items()}, folder / f"{name}-as-float32.safetensors")
    model.save_weights(folder / "small.weights.h5")
    model.save(folder / "small.h5")
    model.save(folder / "small.keras")
    for name, options in (("compressed", {}), ("latest", {"libver": "latest"})):
        with h5py.File(folder / f"{name}.h5", "w", **options) as file:
            file.create_dataset("c1/kernel", data=weights["c1/kernel"], compression=None if options else "gzip")
    without_norms = {name: values for name, values in weights.items() if name.split("/")[0] not in ("bn", "norm")}
    save_file({"input": x, "output": y}, folder / "values.safetensors",
              {"weights_sha256": weights_sha256(weights), "without_norms_sha256": weights_sha256(without_norms)})


def recurrent_network():
    """PyTorch's LSTM of two layers, its GRU, and one in both directions, whose last states are used."""
    parts = nn.ModuleDict({"lstm": nn.LSTM(5, 4, num_layers=2, batch_first=True),
                           "gru": nn.GRU(4, 3, batch_first=True),
                           "both": nn.GRU(3, 2, batch_first=True, bidirectional=True), "head": nn.Linear(4, 2)})
    for tensor in parts.state_dict().values():
        tensor.copy_(torch.from_numpy(rng.normal(0, 0.5, tensor.shape).astype(np.float32)))
    x = torch.from_numpy(rng.normal(0, 1, (3, 6, 5)).astype(np.float32))
    with torch.no_grad():
        states = parts["both"](parts["gru"](parts["lstm"](x)[0])[0])[1]
        y = parts["head"](torch.cat([states[0], states[1]], 1))
    save_torch(parts.state_dict(), folder / "recurrent.safetensors")
    save_file({"input": x.numpy(), "output": y.numpy()}, folder / "recurrent-values.safetensors")


def volume_network():
    """PyTorch's layers over volumes, and a dense layer that reads a flattened volume."""
    parts = nn.ModuleDict({"conv": nn.Conv3d(2, 6, (2, 3, 3), stride=(1, 2, 1), padding=(0, 1, 1)),
                           "bn": nn.BatchNorm3d(6), "up": nn.ConvTranspose3d(6, 4, (2, 1, 2), stride=(2, 1, 2)),
                           "grouped": nn.Conv3d(4, 4, 2, groups=2, bias=False), "head": nn.Linear(3 * 1 * 2 * 4, 3)}).eval()
    for name, tensor in parts.state_dict().items():
        if tensor.dtype == torch.float32:
            values = rng.uniform(0.5, 1.5, tensor.shape) if "var" in name else rng.normal(0, 0.4, tensor.shape)
            tensor.copy_(torch.from_numpy(values.astype(np.float32)))
    x = rng.normal(0, 1, (3, 5, 8, 6, 2)).astype(np.float32)
    with torch.no_grad():
        y = torch.relu(parts["bn"](parts["conv"](torch.from_numpy(x.transpose(0, 4, 1, 2, 3).copy()))))
        y = parts["grouped"](nn.functional.max_pool3d(parts["up"](y), 2))
        y = nn.functional.avg_pool3d(y, (1, 1, 2))
        y = parts["head"](y.flatten(1))
    save_torch(parts.state_dict(), folder / "volumes.safetensors")
    save_file({"input": x, "output": y.numpy()}, folder / "volumes-values.safetensors")


def names_of_networks():
    """Writes names.txt, with lines of preset, program, tensor name and shape."""
    lines = []

    def add(preset, program, tensors):
        for name, shape in tensors:
            lines.append(f"{preset} {program} {name} {'x'.join(map(str, shape))}")

    def of_torch(model):
        return [(name, tensor.shape) for name, tensor in model.state_dict().items() if tensor.is_floating_point()]

    with torch.device("meta"):
        for preset in ("resnet18", "resnet50", "resnet101", "wide_resnet50_2", "vgg16", "vgg19", "mobilenet_v2",
                       "densenet121", "efficientnet_b0"):
            add(preset, "torchvision", of_torch(getattr(torchvision.models, preset)()))
        for preset, name in (("vit_b16", "vit_b_16"), ("convnext_tiny", "convnext_tiny")):
            add(preset, "torchvision", of_torch(getattr(torchvision.models, name)()))
        for preset, name in (("resnet18", "resnet18"), ("vgg16", "vgg16"), ("mobilenet_v2", "mobilenetv2_100"),
                             ("efficientnet_b0", "efficientnet_b0"), ("vit_b16", "vit_base_patch16_224"),
                             ("vit_s16", "vit_small_patch16_224"), ("deit_tiny", "deit_tiny_patch16_224"),
                             ("convnext_tiny", "convnext_tiny"), ("mlp_mixer", "mixer_b16_224")):
            add(preset, "timm", of_torch(timm.create_model(name)))
    for preset, make in (("vgg16", keras.applications.VGG16), ("vgg19", keras.applications.VGG19),
                         ("densenet121", keras.applications.DenseNet121),
                         ("mobilenet_v2", keras.applications.MobileNetV2),
                         ("efficientnet_b0", keras.applications.EfficientNetB0)):
        model = make(weights=None)
        add(preset, "keras", [(f"{layer.name}/{weight.name}", weight.shape)
                              for layer in model.layers for weight in layer.weights
                              if not isinstance(layer, keras.layers.Normalization)])
    (folder / "names.txt").write_text("\n".join(lines) + "\n")


small_network()
recurrent_network()
volume_network()
names_of_networks()
