#!/usr/bin/env python3
"""Makes test/golden/bert.safetensors: a small BERT that classifies texts, composed of PyTorch's modules. Needs torch and
safetensors. The names of the values are those of keras_masks.py."""
import pathlib

import numpy as np
import torch
from safetensors.numpy import save_file
from torch import nn

WIDTH, HEADS, MLP, LAYERS, VOCABULARY, POSITIONS, CLASSES = 6, 2, 10, 2, 7, 8, 3
torch.manual_seed(46)
TOKENS = torch.tensor([[3, 1, 4, 0, 0, 0], [2, 6, 5, 1, 3, 2], [1, 2, 3, 4, 5, 0], [4, 2, 0, 0, 0, 0]])
TARGETS = torch.tensor([2, 0, 1, 1])


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(POSITIONS, WIDTH)
        self.types = nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        block = nn.TransformerEncoderLayer(WIDTH, HEADS, MLP, 0.0, "gelu", 1e-12, batch_first=True)
        self.encoder = nn.TransformerEncoder(block, LAYERS, enable_nested_tensor=False)
        self.pooler = nn.Linear(WIDTH, WIDTH)
        self.predictions = nn.Linear(WIDTH, CLASSES)

    def forward(self, tokens):
        x = self.words(tokens) + self.positions.weight[:tokens.shape[1]] + self.types(torch.zeros_like(tokens))
        x = self.encoder(self.norm(x), src_key_padding_mask=tokens == 0)
        return self.predictions(torch.tanh(self.pooler(x[:, 0])))


def linear(name, layer, get):
    return {f"{name}/kernel": get(layer.weight).T, f"{name}/bias": get(layer.bias)}


def norm(name, layer, get):
    return {f"{name}/gamma": get(layer.weight), f"{name}/beta": get(layer.bias)}


def named(model, get):
    values = {"word_embeddings/embeddings": get(model.words.weight),
              "position_embeddings/embeddings": get(model.positions.weight),
              "token_type_embeddings/embeddings": get(model.types.weight), **norm("embeddings_norm", model.norm, get),
              **linear("pooler", model.pooler, get), **linear("predictions", model.predictions, get)}
    for n, block in enumerate(model.encoder.layers):
        own = f"encoder/{n}"
        weights, biases = get(block.self_attn.in_proj_weight), get(block.self_attn.in_proj_bias)
        for k, part in enumerate(("query", "key", "value")):
            values[f"{own}/attention/self/{part}/kernel"] = weights[k * WIDTH:(k + 1) * WIDTH].T
            values[f"{own}/attention/self/{part}/bias"] = biases[k * WIDTH:(k + 1) * WIDTH]
        values |= linear(f"{own}/attention/self/attention_output", block.self_attn.out_proj, get)
        values |= norm(f"{own}/attention_norm", block.norm1, get) | norm(f"{own}/output_norm", block.norm2, get)
        values |= linear(f"{own}/mlp/intermediate", block.linear1, get) | linear(f"{own}/mlp/output", block.linear2, get)
    return {name: np.ascontiguousarray(value, np.float32) for name, value in values.items()}


if __name__ == "__main__":
    model = Bert().double()
    for parameter in model.parameters():
        parameter.data = torch.randn_like(parameter).float().double() * 0.5
    logits = model(TOKENS)
    loss = nn.functional.cross_entropy(logits, TARGETS)
    loss.backward()
    found = {"bert/in0": TOKENS.numpy().astype(np.int32), "bert/targets": TARGETS.numpy().astype(np.int32),
             "bert/loss": np.array([loss.item()], np.float32),
             "bert/accuracy": np.array([(logits.argmax(-1) == TARGETS).double().mean()], np.float32)}
    for name, value in named(model, lambda p: p.detach().numpy()).items():
        found[f"bert/value/{name}"] = value
    for name, value in named(model, lambda p: p.grad.numpy()).items():
        found[f"bert/gradient/{name}"] = value
    save_file(found, pathlib.Path(__file__).parent / "bert.safetensors")
    print(len(found), "values, loss", loss.item())
