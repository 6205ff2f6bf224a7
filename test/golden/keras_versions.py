#!/usr/bin/env python3
"""Makes test/golden/keras_versions: the same networks as different versions of Keras save them. Run once for each version:

    python3 test/golden/keras_versions.py                 # keras, whichever version is installed: 2.12 to the newest
    python3 test/golden/keras_versions.py tf_keras

The weights depend on the layers' names only, so that NETWORK.safetensors has the predictions of each NETWORK-VERSION.*.
The names of the layers clash with the names by which those versions count the layers of a class ("dense", "dense_1").
"""
import importlib
import io
import json
import pathlib
import struct
import sys
import tempfile
import zipfile
import zlib

import numpy as np

keras = importlib.import_module(sys.argv[1] if len(sys.argv) > 1 else "keras")
L = keras.layers
folder = pathlib.Path(__file__).parent / "keras_versions"
folder.mkdir(exist_ok=True)
version = ".".join(keras.__version__.split(".")[:2])
if keras.__name__ == "tf_keras":
    version = "tf" + version


def branches():
    """A residual block whose projection is created first, a layer called twice, and two branches of equal shapes."""
    x = keras.Input((6, 5, 4), name="image")
    projection = L.Conv2D(4, 3, padding="same", name="conv2d_1")
    late, early = L.Conv2D(4, 3, padding="same", name="conv2d"), L.Conv2D(4, 3, padding="same", name="conv2d_2")
    after, before = L.BatchNormalization(name="batch_normalization"), L.BatchNormalization(name="batch_normalization_1")
    y = after(late(L.ReLU(name="first")(before(early(x)))))
    y = L.ReLU(name="second")(L.Add(name="sum")([y, projection(x)]))
    y = L.GlobalAveragePooling2D(name="mean")(y)
    shared, left, right = (L.Dense(4, name=name, activation="tanh") for name in ("dense_2", "dense_1", "dense"))
    a, b = shared(left(y)), shared(right(y))
    y = L.Concatenate(name="both")([a, L.LayerNormalization(name="norm")(b)])
    return keras.Model(x, L.Dense(2, name="dense_3")(y), name="branches")


def row():
    """A Sequential network whose layers are created in another order, with a recurrent layer inside."""
    last, first, second = (L.Dense(4, name=name) for name in ("dense", "dense_1", "dense_2"))
    return keras.Sequential([keras.Input((4, 4)), first, L.ReLU(name="r"), second, L.GRU(4, name="lstm"), last], name="row")


def nested():
    """Inner networks: one is called twice and has a frozen layer, one holds another, one is Sequential."""
    i = keras.Input((5, 4, 3), name="inner_image")
    frozen = L.Conv2D(3, 3, padding="same", name="conv2d_1")
    y = L.BatchNormalization(name="batch_normalization")(frozen(i))
    y = L.BatchNormalization(name="b")(L.Conv2D(3, 3, padding="same", name="conv2d")(y))
    base = keras.Model(i, L.Add(name="add")([i, y]), name="base")
    frozen.trainable = False
    j = keras.Input((5, 4, 3), name="outer_image")
    y = L.Conv2D(3, 1, name="conv2d_2")(base(base(j)))
    outer = keras.Model(j, y, name="outer")
    head = keras.Sequential([keras.Input((3,)), L.Dense(3, activation="tanh", name="dense_1"),
                             L.BatchNormalization(name="batch_normalization"), L.Dense(3, name="dense")], name="head")
    head.trainable = False
    x = keras.Input((5, 4, 3), name="image")
    y = L.GlobalAveragePooling2D(name="mean")(L.Conv2D(3, 3, name="conv2d")(outer(x)))
    return keras.Model(x, L.Dense(2, name="dense")(head(head(y))), name="nested")


def shared():
    """A layer that is used in an inner network and in the outer one."""
    i, both = keras.Input((4,), name="inner_values"), L.Dense(4, name="both")
    inner = keras.Model(i, L.Dense(4, name="dense_1", activation="tanh")(both(i)), name="inner")
    x = keras.Input((4,), name="values")
    y = L.Dense(4, name="dense")(L.Add(name="add")([L.Dense(4, name="dense_2")(both(x)), inner(x)]))
    return keras.Model(x, y, name="shared")


def operations():
    """Arithmetic with numbers, as in MobileNetV3; layers without effect in prediction; bidirectional layers."""
    x = keras.Input((6, 5, 4), name="image")
    y = L.Conv2D(4, 3, padding="same", name="conv2d_1")(L.RandomFlip("horizontal", name="flip")(x))
    y = L.Multiply(name="swish")([y, L.ReLU(6.0, name="six")(y + 3.0) * (1.0 / 6.0)])
    y = y - (1.0 - scale(L.Conv2D(4, 1, name="conv2d")(y)) / 2.0)
    rows = L.Reshape((6, 20), name="rows")(y)
    a = L.Bidirectional(L.LSTM(3), name="both_ways")(rows)
    b = L.Bidirectional(L.GRU(3), merge_mode="sum", name="sum_of_both")(rows)
    return keras.Model(x, L.Dense(2, name="dense_1")(L.Concatenate(name="all")([a, b])), name="operations")


def scale(x):
    for package in keras.__name__ + ".src", keras.__name__:
        try:
            convnext = importlib.import_module(package + ".applications.convnext")
            return convnext.LayerScale(0.5, x.shape[-1], name="layer_scale")(x)
        except ImportError:
            pass
    raise ImportError("no LayerScale")


def names():
    """Names that groups of the older kind in an .h5 file cannot have, and that Keras 2 refuses."""
    wanted = ["größe", "畳み込み", "a.b-c", "my dense (1)", "Ä", "Ö", "Ü", "ß", "ok"]
    return keras.Sequential([keras.Input((4,))] + [L.Dense(4, name=name) for name in wanted], name="names")


def attention():
    """Attention to a sequence with padding, and to the sequence itself."""
    tokens = keras.Input((6,), dtype="int32", name="tokens")
    padded = L.Embedding(9, 8, mask_zero=True, name="embedding_1")(tokens)
    y = L.MultiHeadAttention(2, 4, name="multi_head_attention_1")(L.Embedding(9, 8, name="embedding")(tokens), padded)
    y = L.MultiHeadAttention(3, 2, value_dim=2, use_bias=False, name="multi_head_attention")(y, y, use_causal_mask=True)
    return keras.Model(tokens, L.Dense(2, name="dense")(L.GlobalAveragePooling1D(name="mean")(y)), name="attention")


def grouped():
    """Attention whose heads share keys and values."""
    x = keras.Input((5, 4), name="sequence")
    y = L.GroupQueryAttention(2, 4, 2, name="grouped_query_attention_1")(x, x)
    y = L.GroupQueryAttention(2, 2, 1, use_bias=False, name="grouped_query_attention")(y, y)
    return keras.Model(x, L.Dense(2, name="dense")(L.GlobalAveragePooling1D(name="mean")(y)), name="grouped")


def values(name, number, shape):
    random = np.random.default_rng(zlib.crc32(f"{name} {number}".encode()))
    return random.uniform(0.2, 0.8, shape).astype(np.float32) * (1 if number > 1 else random.choice([-1, 1], shape))


def set_weights(model, path=""):
    for layer in model.layers:
        if isinstance(layer, (keras.Model, keras.Sequential)):
            set_weights(layer, path + layer.name + "/")
        elif layer.weights:
            key = layer.name if layer.name == "both" else path + layer.name
            layer.set_weights([values(key, i, w.shape) for i, w in enumerate(layer.get_weights())])


def archive(path, members):
    """Writes a zip file without data that differs from run to run."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


def saved(model, name, **options):
    with tempfile.TemporaryDirectory() as temporary:
        path = pathlib.Path(temporary) / name
        model.save(path, **options)
        return path.read_bytes()


def save_arrays(path, arrays):
    header, data = {}, b""
    for name, array in arrays.items():
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [len(data), len(data) + array.nbytes]}
        data += np.ascontiguousarray(array, "<f4").tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


older = {}
networks = [branches, row, nested, shared, operations, attention] + ([grouped, names] if version[0] == "3" else [])
for make in networks:
    keras.backend.clear_session()
    model = make()
    set_weights(model)
    shape = (3, *model.input_shape[1:])
    x = np.random.default_rng(4).normal(0, 1, shape).astype(np.float32)
    if make == attention:
        x = np.random.default_rng(4).integers(0, 9, shape).astype(np.int32)
    y, golden = np.asarray(model.predict(x, verbose=0)), folder / f"{make.__name__}.safetensors"
    if golden.exists():
        before = np.frombuffer(golden.read_bytes()[-y.nbytes:], "<f4").reshape(y.shape)
        assert np.abs(before - y).max() < 1e-5, (make.__name__, before, y)
    else:
        save_arrays(golden, {"input0": x, "output0": y})
    with zipfile.ZipFile(io.BytesIO(saved(model, "a.keras", **({"save_format": "keras_v3"} if version == "2.12" else {})))) as file:
        members = {name: file.read(name) for name in file.namelist()}
    members["metadata.json"] = json.dumps({"keras_version": keras.__version__}).encode()
    archive(folder / f"{make.__name__}-{version}.keras", members)
    if make != branches:
        try:
            older[f"{make.__name__}.h5"] = saved(model, "a.h5")
        except ValueError as error:  # Keras 3.0 to 3.2 give all weights of inner networks one name
            print(make.__name__, error)
archive(folder / f"h5-{version}.zip", older)
print(keras.__version__)
