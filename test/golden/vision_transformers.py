#!/usr/bin/env python3
"""Makes the small vision transformers, ConvNeXts and the MLP-Mixer of test/golden/pretrained: random weights as torchvision and timm
name and store them, images, and the probabilities of the classes. Needs torch, torchvision, timm, safetensors.

    python3 test/golden/vision_transformers.py
"""
import pathlib

import timm.models
import torch
import torchvision
from safetensors.torch import save_file
from torchvision.models.convnext import CNBlockConfig

folder = pathlib.Path(__file__).parent / "pretrained"
generator = torch.Generator().manual_seed(46)
DEPTHS, WIDTHS = (1, 2, 1, 1), (4, 6, 8, 10)


def vit_torchvision():
    return torchvision.models.VisionTransformer(image_size=12, patch_size=4, num_layers=2, num_heads=2, hidden_dim=8, mlp_dim=20,
                                                num_classes=5)


def vit_timm():
    return timm.models.VisionTransformer(img_size=12, patch_size=4, depth=2, num_heads=2, embed_dim=8, mlp_ratio=2.5, num_classes=5)


def convnext_torchvision():
    settings = [CNBlockConfig(width, following, depth)
                for width, following, depth in zip(WIDTHS, [*WIDTHS[1:], None], DEPTHS)]
    return torchvision.models.ConvNeXt(settings, num_classes=5)


def convnext_timm():
    return timm.models.ConvNeXt(depths=DEPTHS, dims=WIDTHS, num_classes=5)


def mixer_timm():
    return timm.models.MlpMixer(img_size=12, patch_size=4, num_blocks=2, embed_dim=8, mlp_ratio=(0.75, 2.5), num_classes=5)


values = {}
for make, size in ((vit_torchvision, (12, 12)), (vit_timm, (12, 12)), (convnext_torchvision, (32, 64)),
                   (convnext_timm, (32, 64)), (mixer_timm, (12, 12))):
    name = make.__name__
    network = make().eval()
    for key, tensor in network.state_dict().items():
        norm = tensor.ndim == 1 and key.endswith("weight")
        tensor.copy_(torch.randn(tensor.shape, generator=generator) * (0.2 if norm else 0.4) + (1 if norm else 0))
    x = torch.randn(2, 3, *size, generator=generator)
    with torch.no_grad():
        y = torch.softmax(network(x), 1)
    assert y.std(0).max() > 0.02, name
    save_file({key: tensor.contiguous() for key, tensor in network.state_dict().items()}, folder / f"{name}.safetensors")
    values[f"{name}/input"], values[f"{name}/output"] = x.permute(0, 2, 3, 1).contiguous(), y
save_file(values, folder / "vision-values.safetensors")
