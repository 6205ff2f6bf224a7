"""Reading captchas: convolutions and bidirectional LSTMs over the columns of an image, and the CTC loss."""
import csv
import struct
import zlib

import keras
import numpy as np
from keras import layers

from twin_support import images

CHARACTERS = "2345678bcdefgmnpwxy"
LEARNING_RATE = 0.001  # the loss is a sum over 50 steps


def data(random, samples):
    texts = random.integers(1, len(CHARACTERS) + 1, (samples, 5))
    texts[:4] = np.resize(np.arange(len(CHARACTERS)) + 1, (4, 5))  # each character occurs
    texts[::7, 4] = 0  # some texts have four characters
    return images(random, samples, 50, 200, 1), texts


def png(pixels):
    """Returns a file of a gray image."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def write(folder, photos, texts):
    """Writes the images and the table of their texts, and returns what the network reads."""
    with open(folder / "captchas.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["image", "text"])
        for i, (photo, text) in enumerate(zip(photos, texts)):
            (folder / f"{i}.png").write_bytes(png(photo[:, :, 0]))
            table.writerow([f"{i}.png", "".join(CHARACTERS[k - 1] for k in text if k)])
    return photos, texts


def bidirectional(units, name):
    return layers.Bidirectional(layers.LSTM(units, return_sequences=True, name="layer"), name=name)


def network():
    model = keras.Sequential([
        layers.Input((50, 200, 1)), layers.Permute((2, 1, 3)), layers.Rescaling(1 / 255),
        layers.Conv2D(32, 3, activation="relu", kernel_initializer="he_normal", padding="same", name="conv1"),
        layers.MaxPooling2D(),
        layers.Conv2D(64, 3, activation="relu", kernel_initializer="he_normal", padding="same", name="conv2"),
        layers.MaxPooling2D(), layers.Reshape((50, 768)), layers.Dense(64, activation="relu", name="columns"),
        layers.Dropout(0.2), bidirectional(128, "first"), bidirectional(64, "second"),
        layers.Dense(20, name="characters")])
    return model, keras.losses.CTC()
