#!/usr/bin/env python3
"""Makes test/golden/keras: small networks as Keras saves them, with random weights, and their predictions. Needs keras,
keras-hub, tf_keras (Keras 2), h5py, torch, safetensors.

    KERAS_BACKEND=torch python3 test/golden/keras_models.py
"""
import os
import pathlib

os.environ.setdefault("KERAS_BACKEND", "torch")
import keras
import numpy as np
from keras import layers as L
from keras_hub import layers as hub
from safetensors.numpy import save_file

folder = pathlib.Path(__file__).parent / "keras"
folder.mkdir(exist_ok=True)
rng = np.random.default_rng(15)


def cnn():
    """Every layer over images, in a row, with options that are not the defaults."""
    return keras.Sequential([
        L.Input((16, 12, 3)),
        L.ZeroPadding2D(((1, 2), (0, 3)), name="pad"),
        L.Conv2D(8, (3, 5), strides=2, padding="same", kernel_initializer="he_normal", name="first"),
        L.BatchNormalization(momentum=0.9, epsilon=1e-5, name="norm"),
        L.ReLU(6.0),
        L.DepthwiseConv2D(3, padding="same", depth_multiplier=2, activation="silu", name="depthwise"),
        L.SeparableConv2D(8, 3, padding="same", use_bias=False, name="separable"),
        L.LeakyReLU(negative_slope=0.1),
        L.SpatialDropout2D(0.2),
        L.MaxPooling2D(2, strides=1, padding="same"),
        L.Conv2D(8, 3, padding="same", groups=2, dilation_rate=2, activation="leaky_relu",
                 kernel_regularizer=keras.regularizers.L1L2(1e-5, 1e-4), name="grouped"),
        L.GroupNormalization(4, name="groups"),
        L.PReLU(shared_axes=[1, 2], name="slope"),
        L.Conv2DTranspose(6, 3, strides=2, padding="same", activation="elu", name="up"),
        L.LayerNormalization(name="layer"),
        L.UpSampling2D((1, 2), interpolation="bilinear"),
        L.Cropping2D(((1, 0), (2, 2))),
        L.AveragePooling2D((2, 3)),
        L.Permute((2, 1, 3)),
        L.ELU(alpha=0.7),
        L.Reshape((-1, 6)),
        L.Conv1D(7, 3, padding="causal", activation="gelu", name="sequence"),
        L.MaxPooling1D(2),
        L.GaussianNoise(0.1),
        L.Flatten(),
        L.Dropout(0.5),
        L.Dense(9, activation="hard_sigmoid", name="hidden"),
        L.Activation("mish"),
        L.Dense(5, name="predictions"),
        L.Softmax(),
    ], name="cnn")


def functional():
    """Two inputs, two outputs, a skip, shared layers, an inner network that is called twice, and arithmetic."""
    image, other = keras.Input((8, 8, 4), name="image"), keras.Input((6,), name="other")
    block = keras.Input((8, 8, 4))
    inner = keras.Model(block, L.Add()([block, L.Conv2D(4, 3, padding="same", activation="relu", name="conv")(block)]),
                        name="block")
    shared = L.Conv2D(4, 3, padding="same", name="shared")
    a, b = shared(image), inner(image)
    x = L.Concatenate()([shared(b), inner(a), a])
    gate = L.GlobalAveragePooling2D(keepdims=True)(x)
    x = L.Multiply()([x, L.Conv2D(12, 1, activation="sigmoid", name="gate")(gate)])
    x = L.Maximum()([L.GlobalMaxPooling2D()(x), L.GlobalAveragePooling2D()(x)])
    head = keras.Sequential([L.Input((6,)), L.Dense(12, activation="tanh", name="mix"), L.BatchNormalization()],
                            name="head")
    y = head(other)
    x = L.Average()([x, y]) + L.Subtract()([x, y])
    classes = L.Dense(3, activation="softmax", name="classes")
    model = keras.Model([image, other], [classes(L.Minimum()([x, y])), L.Dense(2, name="value")(x)], name="functional")
    model.get_layer("shared").trainable = False
    return model


def sequence():
    """Tokens through recurrent layers."""
    tokens = keras.Input((7,), dtype="int32", name="tokens")
    x = L.Embedding(11, 6, name="embedding")(tokens)
    x = L.GRU(5, return_sequences=True, name="gru")(x)
    x = L.Concatenate()([x, L.LSTM(4, return_sequences=True, go_backwards=True, name="lstm")(x)])
    x = L.GRU(3, use_bias=False, name="last")(L.AveragePooling1D(2)(x))
    model = keras.Model(tokens, L.Dense(2, activation="softmax", name="classes")(x), name="sequence")
    model.compile(keras.optimizers.Adam(3e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def legacy():
    """For the older .h5 file: an inner network with a GRU."""
    inner = keras.Sequential([L.Input((5, 3)), L.GRU(4, return_sequences=True, name="gru"),
                              L.Dense(4, activation="relu", name="dense")], name="inner")
    return keras.Sequential([L.Input((5, 3)), inner, L.GlobalAveragePooling1D(), L.BatchNormalization(name="norm"),
                             L.Dense(2, name="out")], name="legacy")


def scaled():
    """Images of any size, scaled and normalized by layers; names that a config does not allow."""
    image = keras.Input((None, None, 3), name="an image")
    adapted = L.Normalization(name="adapted")
    adapted.build((None, None, None, 3))
    x = adapted(L.Rescaling(1 / 127.5, offset=-1)(image))
    x = L.Rescaling(0.5, name="half")(L.Conv2D(4, 3, activation="relu", name="first conv")(x))
    x = L.Normalization(mean=0.1, variance=2.0)(L.GlobalAveragePooling2D()(x))
    return keras.Model(image, L.Dense(2, name="out")(x), name="scaled")


def slashes():
    """A model of Keras 2, which lets names hold slashes."""
    import tf_keras
    layers = tf_keras.layers
    return tf_keras.Sequential([layers.Input((6,)), layers.Dense(4, activation="relu", name="block/a/dense"),
                                layers.Dense(4, activation="relu", name="block/b"), layers.Dense(2, name="block_b")])


def stochastic():
    """A residual block with dropout of whole samples, as in EfficientNet, and of whole channels."""
    image = keras.Input((6, 5, 4), name="image")
    x = L.Dropout(0.3, noise_shape=(None, 1, 1, None))(L.Conv2D(4, 3, padding="same", name="inner")(image))
    x = L.Add()([image, L.Dropout(0.2, noise_shape=(None, 1, 1, 1))(x)])
    return keras.Model(image, L.Dense(2, name="out")(L.GlobalAveragePooling2D()(x)), name="stochastic")


def directions():
    """Bidirectional layers with all steps and with the last one, in every merge mode, and names in other scripts."""
    steps = keras.Input((5, 3), name="入力")
    x = L.Bidirectional(L.LSTM(4, return_sequences=True), name="両方向")(steps)
    x = L.Bidirectional(L.GRU(3, return_sequences=True), merge_mode="sum", name="été")(x)
    x = L.Bidirectional(L.SimpleRNN(3, return_sequences=True), merge_mode="mul", name="âge")(x)
    x = L.Bidirectional(L.LSTM(3, return_sequences=True), merge_mode="ave", backward_layer=L.GRU(
        3, return_sequences=True, go_backwards=True, name="other"), name="mixed")(x)
    x = L.Concatenate()([L.Bidirectional(L.SimpleRNN(2), name="last")(x), L.GlobalAveragePooling1D()(x)])
    return keras.Model(steps, L.Dense(2, name="出力")(x), name="directions")


def masked():
    """Padding masks of tokens and of values, through recurrent layers into a mean. (Keras writes the masks of functional
    models into their files as tensors of their own, which have no counterpart.)"""
    return keras.Sequential([
        L.Input((7,), dtype="int32"),
        L.Embedding(5, 4, mask_zero=True, name="embedding"),
        L.Bidirectional(L.LSTM(3, return_sequences=True), name="both"),
        L.GlobalAveragePooling1D(),
        L.RepeatVector(3),
        L.Masking(0.5),
        L.GRU(4, return_sequences=True, name="gru"),
        L.SimpleRNN(3, name="last"),
        L.Dense(2, name="out"),
    ], name="masked")


def attention():
    """Attention of every kind, and masks of a functional model, which Keras writes into the file as tensors."""
    tokens = keras.Input((7,), dtype="int32", name="tokens")
    x = L.Embedding(5, 6, mask_zero=True, name="embedding")(tokens)
    x = L.Bidirectional(L.LSTM(3, return_sequences=True), name="both")(x)
    y = L.Add(name="sum")([x, L.GRU(6, return_sequences=True, name="gru")(x)])
    y = L.AdditiveAttention(name="additive")([y, x])
    y = L.Attention(use_scale=True, score_mode="concat", name="concat")([y, x, x])
    vector = L.GlobalAveragePooling1D(name="mean")(y)
    z = L.EinsumDense("abc,cde->abde", (None, 2, 4), bias_axes="de", activation="tanh", name="split")(x)
    z = L.EinsumDense("abcd,cde->abe", (None, 6), name="join")(z)
    z = L.MultiHeadAttention(2, 3, value_dim=5, name="heads")(z, z, use_causal_mask=True)
    z = L.GroupQueryAttention(4, 4, 2, use_gate=False, name="grouped")(query=z, value=x)
    z = L.Dot((2, 1), normalize=True, name="product")([z, vector])
    return keras.Model(tokens, L.Concatenate(name="all")([z, L.Dense(2, name="out")(vector)]), name="attention")


def blocks():
    """keras-hub's blocks of transformers."""
    source, target = keras.Input((5, 8), name="source"), keras.Input((7, 6), name="target")
    x = hub.TransformerEncoder(9, 2, activation="gelu", layer_norm_epsilon=1e-3, name="encoder")(source)
    y = hub.TransformerDecoder(7, 3, normalize_first=True, name="decoder")(target, x)
    y = hub.TransformerDecoder(7, 2, dropout=0.1, name="last")(y)
    return keras.Model([source, target], L.Dense(2, name="out")(y), name="blocks")


def steps():
    """Layers that change the lengths of sequences."""
    return keras.Sequential([
        L.Input((9, 4)),
        L.ZeroPadding1D((1, 3), name="pad"),
        L.Conv1DTranspose(6, 4, strides=3, padding="same", activation="tanh", name="longer"),
        L.Cropping1D((2, 4)),
        L.UpSampling1D(3),
        L.Conv1DTranspose(5, 3, dilation_rate=2, use_bias=False, name="dilated"),
        L.ZeroPadding1D(2),
        L.Conv1DTranspose(3, 2, strides=3, name="gaps"),
        L.Cropping1D(),
        L.UpSampling1D(),
        L.Flatten(),
        L.Dense(6, name="out"),
    ], name="steps")


def translation():
    """An encoder and decoders that begin with its states; one state is an output."""
    source, target = keras.Input((6,), dtype="int32", name="source"), keras.Input((5, 3), name="target")
    read = L.Embedding(11, 6, mask_zero=True, name="read")(source)
    _, h, c = L.LSTM(4, return_state=True, dropout=0.25, recurrent_dropout=0.125, name="encoder")(read)
    y = L.LSTM(4, return_sequences=True, name="decoder")(target, initial_state=[h, c])
    gru = L.GRU(4, return_sequences=True, return_state=True, name="gru")
    x, first = gru(y, initial_state=L.Dense(4, name="changed")(c))
    x, last = gru(x, initial_state=first)
    x = L.Concatenate()([x, L.SimpleRNN(4, return_sequences=True, name="simple")(target, initial_state=last)])
    return keras.Model([source, target], [L.Dense(3, name="words")(x), last], name="translation")
def volumes():
    """Every layer over volumes."""
    return keras.Sequential([
        L.Input((6, 9, 8, 2)),
        L.ZeroPadding3D(((0, 2), (1, 0), (2, 1)), name="pad"),
        L.Conv3D(6, (2, 3, 3), strides=(1, 2, 1), padding="same", activation="relu", name="first"),
        L.MaxPooling3D((1, 2, 2)),
        L.BatchNormalization(name="norm"),
        L.SpatialDropout3D(0.1),
        L.Conv3D(4, 2, groups=2, use_bias=False, name="grouped"),
        L.UpSampling3D((2, 3, 2)),
        L.AveragePooling3D((3, 2, 3), strides=(2, 3, 2), padding="same"),
        L.Conv3DTranspose(5, (3, 2, 4), strides=(2, 3, 1), padding="same", activation="tanh", name="up"),
        L.Cropping3D(((1, 0), (0, 2), (1, 1))),
        L.MaxPooling3D(3, strides=2, padding="same"),
        L.Conv3D(7, (3, 1, 2), dilation_rate=(2, 1, 1), padding="same", name="dilated"),
        L.ZeroPadding3D((1, 0, 2)),
        L.Cropping3D((0, 0, 1)),
        L.AveragePooling3D((2, 1, 2), strides=1),
        L.GlobalAveragePooling3D(keepdims=True),
        L.Flatten(),
        L.Dense(5, name="out"),
    ], name="volumes")


def largest():
    """The largest value of each channel of a volume."""
    return keras.Sequential([L.Input((3, 4, 5, 2)), L.Conv3D(6, 2, name="first"), L.GlobalMaxPooling3D(),
                             L.Dense(3, name="out")], name="largest")


def limits():
    """ReLU with all of its options, and vectors of length 1."""
    x = keras.Input((4, 6))
    rows = [L.ReLU(max_value=0.6, name="limited"), L.ReLU(threshold=0.4, name="shifted"),
            L.ReLU(max_value=0.9, negative_slope=0.2, threshold=0.3, name="all"), L.ReLU(max_value=6, name="six"),
            L.ReLU(negative_slope=0.2, name="leaky"), L.UnitNormalization(name="unit")]
    y = L.Dense(5, name="mixed")(L.Concatenate()([row(x) for row in rows]))
    return keras.Model(x, L.Flatten()(y), name="limits")


def mobilenet():
    """The first blocks of MobileNetV3-Small: hard swish and squeeze-and-excitation by scalar operations."""
    whole = keras.applications.MobileNetV3Small(weights=None, input_shape=(32, 32, 3), alpha=0.25, classes=4)
    return keras.Model(whole.input, whole.get_layer("expanded_conv_3_squeeze_excite_mul").output, name="mobilenet")


def save(make, name, inputs):
    keras.backend.clear_session()
    model = make()
    for weight in model.weights:
        path = getattr(weight, "path", weight.name)
        if "seed" not in path and "count" not in path:
            scale = rng.uniform(0.5, 1.5, weight.shape) if "variance" in path else rng.normal(0, 0.4, weight.shape)
            weight.assign(scale.astype(np.float32))
    for layer in model.layers:
        if isinstance(layer, L.Normalization):
            layer.finalize_state()
    outputs = model.predict(inputs if len(inputs) > 1 else inputs[0], verbose=0)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    model.save(folder / name)
    arrays = {f"input{i}": np.asarray(x, np.float32) for i, x in enumerate(inputs)}
    arrays.update({f"output{i}": y for i, y in enumerate(outputs)})
    arrays.update({w.path: w.numpy() for w in model.weights if getattr(w, "path", "").endswith("vector_u")})
    save_file(arrays, folder / (pathlib.Path(name).stem + ".safetensors"))


def unknown():
    """Layers and options that have no counterpart."""
    x = keras.Input((6, 6, 4))
    y = L.Conv2D(4, 3, padding="same", activity_regularizer="l2", name="penalised")(x)
    y = L.BatchNormalization(axis=1, name="rows")(y)
    y = L.AdaptiveAveragePooling2D((6, 3), name="adaptive")(y)
    y = L.LSTM(3, recurrent_activation="relu", name="rectified")(L.Reshape((36, 2))(y))
    return keras.Model(x, L.Rescaling(1 / 255)(y) * 2.0, name="unknown")


def own_mask():
    """A mask that does not follow from padding."""
    x, mask = keras.Input((6, 4), name="x"), keras.Input((6,), dtype="bool", name="shown")
    return keras.Model([x, mask], L.GRU(3, name="gru")(x, mask=mask), name="own_mask")


def films():
    """Convolutional LSTMs, and layers that multiply by random numbers in training."""
    return keras.Sequential([
        keras.Input((4, 6, 7, 2)),
        L.ConvLSTM2D(3, (3, 2), padding="same", return_sequences=True, recurrent_activation="hard_sigmoid", name="films"),
        L.GaussianDropout(0.1),
        L.ConvLSTM2D(2, 2, strides=2, go_backwards=True, return_sequences=True, unit_forget_bias=False, name="shorter"),
        L.AlphaDropout(0.2),
        L.Reshape((4, 3, 6)),
        L.ConvLSTM1D(2, 2, dilation_rate=2, use_bias=False, name="rows"),
        L.Flatten(),
    ], name="films")


def spectrogram():
    """A spectrogram whose kernels are weights."""
    return keras.Sequential([
        keras.Input((400, 2)),
        L.STFTSpectrogram(mode="log", frame_length=64, frame_step=20, fft_length=64, window="hamming", scaling=None,
                          expand_dims=True, name="spectrogram"),
        L.Conv2D(3, 3, name="conv"),
        L.GlobalAveragePooling2D(),
        L.Dense(4, name="out"),
    ], name="spectrogram")


def film_states():
    """A convolutional LSTM that begins with the states of another one."""
    film, other = keras.Input((4, 6, 5, 2), name="film"), keras.Input((3, 6, 5, 1), name="other")
    _, h, c = L.ConvLSTM2D(3, 2, padding="same", return_state=True, dropout=0.25, recurrent_dropout=0.125, name="encoder")(film)
    y = L.ConvLSTM2D(3, (3, 2), padding="same", return_sequences=True, name="decoder")(other, initial_state=[h, c])
    return keras.Model([film, other], [L.Flatten(name="flat")(y), L.GlobalMaxPooling2D(name="most")(c)], name="film_states")


def spectral():
    """Spectral normalization of layers of several kinds, in a nested network too."""
    x = keras.Input((6, 6, 2), name="x")
    y = L.SpectralNormalization(L.Conv2D(4, 3, activation="tanh"), power_iterations=2, name="conv")(x)
    y = keras.Sequential([
        L.Input((4, 4, 4)),
        L.SpectralNormalization(L.Conv2DTranspose(3, 2, strides=2, use_bias=False), name="up"),
        L.Flatten(),
    ], name="inner")(y)
    y = L.SpectralNormalization(L.Dense(5, kernel_initializer="he_normal"), name="dense", trainable=False)(y)
    return keras.Model(x, L.Dense(2, name="out")(y), name="spectral")


def cells():
    """Depthwise convolutions of sequences, layers for each step, and recurrent layers made of cells."""
    return keras.Sequential([
        L.Input((12, 3)),
        L.DepthwiseConv1D(3, padding="same", depth_multiplier=2, dilation_rate=2, activation="softsign", name="depthwise"),
        L.SeparableConv1D(5, 4, strides=2, depth_multiplier=2, activation="celu", name="separable"),
        L.SeparableConv1D(4, 2, use_bias=False, name="valid"),
        L.TimeDistributed(L.Dense(4, activation="squareplus"), name="each"),
        L.RNN(L.GRUCell(4), return_sequences=True, name="gated"),
        L.RNN(L.LSTMCell(5, unit_forget_bias=False), return_sequences=True, go_backwards=True, name="backwards"),
        L.RNN(L.SimpleRNNCell(3, use_bias=False), name="simple"),
        L.Dense(6, activation="log_softmax", name="scores"),
    ], name="cells")


def each_image():
    """Layers with and without weights for each image of a film, twice with the same weights, and a state of a cell."""
    film = keras.Input((4, 7, 6, 2), name="film")
    each = L.TimeDistributed(L.Conv2D(2, 3, padding="same", activation="hard_tanh"), name="conv")
    y = each(each(film))
    y = L.TimeDistributed(L.MaxPooling2D(2), name="pool")(y)
    y = L.TimeDistributed(L.DepthwiseConv2D(2, depth_multiplier=2), name="depthwise")(y)
    y = L.TimeDistributed(L.GlobalAveragePooling2D(), name="mean")(y)
    y, hidden, cell = L.RNN(L.LSTMCell(3), return_state=True, name="recurrent")(y)
    return keras.Model(film, L.Concatenate(name="all")([y, hidden, cell]), name="each_image")


def activations():
    """All functions of Keras' activations that need no arguments, in layers and as layers."""
    names = ["celu", "elu", "exponential", "gelu", "glu", "hard_shrink", "hard_sigmoid", "hard_silu", "hard_tanh", "leaky_relu", "linear", "log_sigmoid",
             "log_softmax", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_shrink", "softmax", "softplus", "softsign", "sparse_plus",
             "sparse_sigmoid", "squareplus", "tanh", "tanh_shrink"]
    x = keras.Input((4,), name="x")
    parts = [L.Dense(8 if name == "glu" else 4, activation=name, name=f"dense_{name}")(x) for name in names]
    heads = L.EinsumDense("ab,bcd->acd", (3, 4), bias_axes="cd", activation="softmax", name="heads")(x)
    y = L.Concatenate(name="parts")(parts)
    return keras.Model(x, L.Concatenate(name="all")([y, L.Flatten(name="flat")(heads)] + [L.Activation(name, name=f"layer_{name}")(y) for name in names]), name="activations")


normal = lambda *shape: rng.normal(0, 1, shape).astype(np.float32)
save(cnn, "cnn.keras", [normal(3, 16, 12, 3)])
save(functional, "functional.keras", [normal(3, 8, 8, 4), normal(3, 6)])
save(sequence, "sequence.keras", [rng.integers(0, 11, (3, 7)).astype(np.int32)])
save(legacy, "legacy.h5", [normal(3, 5, 3)])
unknown().save(folder / "unknown.keras")
own_mask().save(folder / "own_mask.keras")
save(scaled, "scaled.keras", [(normal(3, 9, 7, 3) * 60 + 120).clip(0, 255)])
save(slashes, "slashes.h5", [normal(3, 6)])
save(stochastic, "stochastic.keras", [normal(3, 6, 5, 4)])
save(directions, "directions.keras", [normal(3, 5, 3)])
save(masked, "masked.keras", [rng.integers(0, 5, (4, 7)).astype(np.int32)])
save(mobilenet, "mobilenet.keras", [normal(2, 32, 32, 3) * 60 + 120])
save(attention, "attention.keras", [rng.integers(0, 5, (4, 7)).astype(np.int32)])
save(blocks, "blocks.keras", [normal(3, 5, 8), normal(3, 7, 6)])
save(steps, "steps.keras", [normal(3, 9, 4)])
save(limits, "limits.keras", [normal(3, 4, 6)])
save(translation, "translation.keras", [rng.integers(0, 5, (3, 6)).astype(np.int32), normal(3, 5, 3)])
save(volumes, "volumes.keras", [normal(3, 6, 9, 8, 2)])
save(largest, "largest.keras", [normal(3, 3, 4, 5, 2)])
save(films, "films.keras", [normal(3, 4, 6, 7, 2)])
save(spectrogram, "spectrogram.keras", [normal(3, 400, 2)])
save(film_states, "film_states.keras", [normal(3, 4, 6, 5, 2), normal(3, 3, 6, 5, 1)])
save(spectral, "spectral.keras", [normal(3, 6, 6, 2)])
save(spectral, "spectral_layers.h5", [normal(3, 6, 6, 2)])
save(cells, "cells.keras", [normal(3, 12, 3)])
save(cells, "cells_layers.h5", [normal(3, 12, 3)])
save(each_image, "each_image.keras", [normal(3, 4, 7, 6, 2)])
save(activations, "activations.keras", [normal(3, 4)])
