"""Makes the windows of series.py: FOLDER/x_train.npy [20000, 48, 1] and y_train.npy [20000, 1], x_test.npy and y_test.npy [5000].

Each window is a piece of the sum of two sine waves of random length, height and phase, with noise. y is the next value of the
sum, without noise. Every call writes the same files.
"""
import pathlib
import sys

import numpy as np

STEPS = 48


def windows(rng, count):
    time = np.arange(STEPS + 1)
    values = np.zeros((count, STEPS + 1))
    for shortest, longest in ((6, 12), (20, 60)):
        length, height, phase = (rng.uniform(*limits, (count, 1)) for limits in ((shortest, longest), (0.3, 1), (0, 2 * np.pi)))
        values += height * np.sin(2 * np.pi * time / length + phase)
    noisy = values[:, :-1] + 0.1 * rng.standard_normal((count, STEPS))
    return noisy[..., None].astype("float32"), values[:, -1:].astype("float32")


if __name__ == "__main__":
    folder, rng = pathlib.Path(sys.argv[1]), np.random.default_rng(1)
    folder.mkdir(parents=True, exist_ok=True)
    for part, count in (("train", 20000), ("test", 5000)):
        for name, array in zip("xy", windows(rng, count)):
            np.save(folder / f"{name}_{part}.npy", array)
