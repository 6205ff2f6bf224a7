#!/usr/bin/env python3
"""Writes muon.safetensors: steps of Keras' Muon in float64. Needs keras, numpy, safetensors, torch.

    KERAS_BACKEND=torch python3 test/golden/make_muon.py

Four parameters: a wide matrix [5, 9], a tall one [9, 4], a vector [7], and a matrix [6, 3] of an embedding, which takes
AdamW's steps. For each CASE the file has CASE/before, CASE/gradients [steps, elements] and CASE/after [steps,
elements]; the parameters lie one after the other. test/core/ops/muon_test.cpp has the options of the cases.
"""
import os
import pathlib
import zlib

os.environ.setdefault("KERAS_BACKEND", "torch")
import keras
import numpy as np
from safetensors.numpy import save_file

keras.config.set_floatx("float64")
shapes = {"wide/kernel": (5, 9), "tall/kernel": (9, 4), "wide/bias": (7,), "embedding/table": (6, 3)}
steps = 4
cases = {
    "muon": dict(learning_rate=0.0625),
    "muon_plain": dict(learning_rate=0.0625, nesterov=False, rms_rate=None, ns_steps=3, momentum=0.75),
    "muon_decay": dict(learning_rate=0.0625, weight_decay=0.25, adam_weight_decay=0.25, adam_lr_ratio=0.5,
                       adam_beta_1=0.75, adam_beta_2=0.9375, epsilon=1e-3, exclude_layers=["tall"]),
}
values = {}
for name, options in cases.items():
    random = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))
    options = {"weight_decay": 0.0, "adam_weight_decay": 0.0, **options}
    optimizer = keras.optimizers.Muon(**options)
    before = [np.float32(random.standard_normal(shape)).astype(np.float64) for shape in shapes.values()]
    variables = []
    for (path, _), initial in zip(shapes.items(), before):
        variable = keras.Variable(initial, dtype="float64", name=path.replace("/", "_"))
        variable._path = path
        variables.append(variable)
    gradients, after = [], []
    for _ in range(steps):
        gradient = [np.float32(random.standard_normal(shape)).astype(np.float64) for shape in shapes.values()]
        optimizer.apply([keras.ops.convert_to_tensor(g) for g in gradient], variables)
        flat = lambda arrays: np.concatenate([np.asarray(a).ravel() for a in arrays])
        gradients.append(flat(gradient))
        after.append(flat([keras.ops.convert_to_numpy(v) for v in variables]))
    for key, value in {"before": flat(before), "gradients": np.stack(gradients), "after": np.stack(after)}.items():
        values[f"{name}/{key}"] = value.astype(np.float32)
save_file(values, pathlib.Path(__file__).parent / "muon.safetensors")
print(f"{len(values)} tensors, {sum(v.nbytes for v in values.values())} bytes")
