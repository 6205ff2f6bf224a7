#!/usr/bin/env python3
"""Makes test/golden/keras_spectrograms.safetensors with Keras 3's values. Needs keras with a backend of PyTorch, scipy and safetensors.

    python3 test/golden/keras_spectrograms.py

Networks that begin with STFTSpectrogram: the values of keras_masks.py, in its format. Mel spectrograms: CASE/x [values, channels] and
CASE/y [num_mel_bins, frames, channels].
"""
import os
import pathlib

os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np
import torch
from keras import layers as L
from safetensors.numpy import save_file

rng = np.random.default_rng(48)
values = {}


def network(name, shape, spectrogram, *layers):
    x = i = keras.Input(shape)
    for layer in (spectrogram, *layers, L.Dense(3, name="d")):
        x = layer(x)
    model = keras.Model(i, x)
    for weight in model.layers[-1].trainable_weights:
        weight.assign(rng.normal(0, 0.6, weight.shape))
    inputs = rng.standard_normal((4, *shape)).astype(np.float32)
    targets = rng.integers(0, 3, 4).astype(np.int32)
    y = model(inputs, training=True)
    loss = torch.nn.functional.cross_entropy(y, torch.tensor(targets).long().to(y.device))
    loss.backward()
    as_numpy = lambda tensor: tensor.detach().cpu().numpy()
    values.update({f"{name}/in0": inputs, f"{name}/targets": targets, f"{name}/out": as_numpy(y),
                   f"{name}/loss": as_numpy(loss).reshape(1),
                   f"{name}/accuracy": np.float32((as_numpy(y).argmax(-1) == targets).mean()).reshape(1)})
    for weight in model.trainable_weights:
        part = f"{weight.path.split('/')[0]}/{weight.path.split('/')[-1]}"
        values[f"{name}/value/{part}"] = as_numpy(weight.value)
        values[f"{name}/gradient/{part}"] = as_numpy(weight.value.grad)


def networks():
    stft = lambda **options: L.STFTSpectrogram(name="s", **options)
    network("log", (40, 1), stft(frame_length=8), L.Flatten())
    network("magnitude", (40, 2), stft(mode="magnitude", frame_length=6, frame_step=5, padding="same", window="hamming"),
            L.Flatten())
    network("psd", (30, 2), stft(mode="psd", frame_length=7, fft_length=16, scaling="spectrum", periodic=True), L.Flatten())
    network("image", (40, 3), stft(mode="log", frame_length=8, fft_length=8, scaling=None, expand_dims=True),
            L.Conv2D(2, 2, name="c"), L.GlobalAveragePooling2D())
    network("stft", (40, 2), stft(mode="stft", frame_length=8, frame_step=3), L.Flatten())
    network("real", (40, 1), stft(mode="real", frame_length=8, window=None), L.Flatten())
    network("imag", (40, 1), stft(mode="imag", frame_length=8), L.Flatten())
    # The angle of a number whose imaginary part is 0 depends on the sign of the zero: kernels without such a part.
    angle = stft(mode="angle", frame_length=8)
    angle.build((None, 40, 1))
    angle.imag_kernel.assign(rng.normal(0, 1, angle.imag_kernel.shape))
    network("angle", (40, 1), angle, L.Flatten())


def mel(name, shape, **options):
    """The channels of one sample are a batch of Keras, so that `top_db` counts from the largest value of all of them."""
    x = (rng.standard_normal(shape) * np.exp(-np.arange(shape[0]) / shape[0] * 5)[:, None]).astype(np.float32)
    values[f"{name}/x"] = x
    y = keras.ops.convert_to_numpy(L.MelSpectrogram(**options)(x.T))
    values[f"{name}/y"] = np.ascontiguousarray(np.moveaxis(y, 0, -1)).astype(np.float32)


def mels():
    mel("mel_default", (4000, 1), fft_length=512, sequence_stride=128, num_mel_bins=20)
    mel("mel_short_window", (1500, 2), fft_length=256, sequence_length=200, sequence_stride=77, num_mel_bins=16, window="hamming",
        top_db=20.0, ref_power=0.5)
    mel("mel_magnitude", (900, 1), fft_length=400, sequence_stride=160, num_mel_bins=12, power_to_db=False, mag_exp=1.0,
        sampling_rate=8000, min_freq=100.0, max_freq=3000.0)
    mel("mel_no_window", (700, 1), fft_length=96, sequence_stride=40, num_mel_bins=10, window=None,
        power_to_db=False)


if __name__ == "__main__":
    networks()
    mels()
    save_file({name: np.ascontiguousarray(value) for name, value in values.items()},
              pathlib.Path(__file__).parent / "keras_spectrograms.safetensors")
    for name in sorted({n.split("/")[0] for n in values}):
        print(name, {n.split("/", 1)[1]: (v.shape, float(np.abs(v).max())) for n, v in values.items() if n.startswith(name + "/")})
