#!/usr/bin/env python3
"""Makes test/golden/keras_versions/h5-files.zip: .h5 files with the scopes of other layers, and with many members in one
group. Needs h5py, and the files that keras_versions.py made.

    python3 test/golden/keras_h5.py
"""
import io
import pathlib
import zipfile

import h5py
import numpy as np

folder = pathlib.Path(__file__).parent / "keras_versions"


def rescoped(scope_of):
    """The Sequential network `row`, with other scopes before its weights' names."""
    with zipfile.ZipFile(folder / "h5-2.15.zip") as archive:
        source = h5py.File(io.BytesIO(archive.read("row.h5")))
    file = io.BytesIO()
    with h5py.File(file, "w") as target:
        target.attrs.update(source.attrs)
        weights = target.create_group("model_weights")
        weights.attrs["layer_names"] = [np.bytes_(name) for name in source["model_weights"].attrs["layer_names"]]
        for layer in source["model_weights"].attrs["layer_names"]:
            group, own = source["model_weights"][layer], weights.create_group(layer)
            names = {name: scope_of(layer) + name.split("/")[-1] for name in group.attrs["weight_names"]}
            own.attrs["weight_names"] = np.array([name.encode() for name in names.values()], "S")
            for name, other in names.items():
                own[other] = group[name][()]
    return file.getvalue()


def links():
    """A group with more members than a node of its tree of names can have, and more names than a block of its heap."""
    file = io.BytesIO()
    with h5py.File(file, "w") as target:
        group = target.create_group("layer")
        for i in range(300):
            group[f"größe {i}"] = np.float32([i])
    return file.getvalue()


others = {"dense": "dense_1", "dense_1": "dense", "dense_2": "dense_2"}
members = {"numbered.h5": rescoped(lambda layer: layer + "_1/"), "model.h5": rescoped(lambda layer: f"row/{layer}/"),
           "none.h5": rescoped(lambda layer: ""), "swapped.h5": rescoped(lambda layer: others.get(layer, layer) + "/"),
           "links.h5": links()}
with zipfile.ZipFile(folder / "h5-files.zip", "w") as archive:
    for name, data in members.items():
        archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
