#!/usr/bin/env python3
"""Writes expressions.safetensors: values and gradients of the expressions in expressions.jsonl, as keras.ops with PyTorch
as its backend computes them in float64 from the same text: expressions.py

Needs keras, torch and safetensors."""
import json
import os
import pathlib

os.environ["KERAS_BACKEND"] = "torch"
import keras  # noqa: E402
import torch  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

from cases import Case, values  # noqa: E402

FOLDER = pathlib.Path(__file__).parent
keras.backend.set_floatx("float64")


def main():
    functions = {name: getattr(keras.ops, name) for name in dir(keras.ops) if not name.startswith("_")}
    functions["stop_gradient"] = torch.detach
    functions |= {"einsum": torch.einsum, "matmul": torch.matmul}  # those of keras.ops compute in float32
    for line in (FOLDER / "expressions.jsonl").read_text().splitlines():
        of = json.loads(line)
        case = Case("expression_" + of["name"])
        low, high = of.get("low", -2), of.get("high", 2)
        names = {**of["inputs"], **of.get("weights", {})}
        tensors = {name: case.uniform(*shape, low=low, high=high) for name, shape in names.items()}
        result = eval(of["expression"], {**functions, **tensors})
        case.record(list(tensors.values()), [result])
    save_file(values, FOLDER / "expressions.safetensors")


if __name__ == "__main__":
    main()
