"""Samples that networks can learn from, in the shapes of the examples: what keras_accuracy trains the twins on."""
import numpy as np

from twin_support import images

PROTOTYPES = 7  # seed of what the classes look like; training and validation samples share it


def classed_images(random, count, classes, shape, share):
    """Returns images in which `share` of the values are those of their class' pattern, and their classes."""
    patterns = images(np.random.default_rng(PROTOTYPES), classes, *shape)
    y = random.integers(0, classes, count)
    x = share * patterns[y] + (1 - share) * images(random, count, *shape)
    return x.astype("uint8"), y


def classed_words(random, count, words, positions, share):
    """Returns texts of two classes: `share` of the words come from the class' own list of 200 frequent words."""
    own = np.random.default_rng(PROTOTYPES).permutation(words)[:400].reshape(2, 200)
    y = random.integers(0, 2, count)
    frequent = own[y[:, None], random.integers(0, 200, (count, positions))]
    common = own[random.integers(0, 2, (count, positions)), random.integers(0, 200, (count, positions))]
    return np.where(random.random((count, positions)) < share, frequent, common), y


def classed_series(random, count, positions):
    """Returns noisy waves; those of class 1 have every second period weakened."""
    y = random.integers(0, 2, count)
    time = np.arange(positions) + random.uniform(0, 20, (count, 1))
    waves = np.sin(2 * np.pi * time / 10) * np.where((time // 10) % 2 == 0, 1, np.where(y[:, None] == 1, 0.6, 1))
    return (waves + random.normal(0, 0.6, waves.shape))[:, :, None].astype("float32"), y


def classed_table(random, count, columns, classes):
    """Returns rows whose class is the largest of products of two linear functions of the row, with noise."""
    known = np.random.default_rng(PROTOTYPES)
    first, second = (known.normal(size=(columns, classes)) / np.sqrt(columns) for _ in range(2))
    x = random.normal(size=(count, columns)).astype("float32")
    return x, np.argmax((x @ first) * (x @ second) + random.normal(0, 0.3, (count, classes)), axis=1)


def noisy_digits(random, count):
    """Returns noisy images of two bright bars in random places, and the same images without noise."""
    clean = np.zeros((count, 28, 28, 1), "float32")
    for image, (row, column) in zip(clean, random.integers(2, 22, (count, 2))):
        image[row:row + 4] = image[:, column:column + 4] = 1
    return (clean + random.normal(0, 0.4, clean.shape)).clip(0, 1).astype("float32"), clean


def ratings(random, count, users, films):
    """Returns pairs of users and popular films, and noisy ratings from 0 to 1 that follow from the product of two vectors."""
    known = np.random.default_rng(PROTOTYPES)
    vectors = [known.normal(size=(number, 4)) for number in (users, films)]
    pairs = [random.integers(0, number, (count, 1)) for number in (users, films)]
    product = (vectors[0][pairs[0][:, 0]] * vectors[1][pairs[1][:, 0]]).sum(1) + random.normal(0, 0.5, count)
    return {"user": pairs[0], "film": pairs[1]}, (1 / (1 + np.exp(-product)))[:, None].astype("float32")


def additions(random, count):
    """Returns questions such as "73+8" and their answers, filled up with spaces, as one-hot and as numbers of characters."""
    characters = {character: number for number, character in enumerate("0123456789+ ")}
    left, right = random.integers(0, 100, (2, count))
    questions = [[characters[c] for c in f"{a}+{b}".ljust(7)] for a, b in zip(left, right)]
    answers = [[characters[c] for c in str(a + b).ljust(4)] for a, b in zip(left, right)]
    return np.eye(12, dtype="float32")[questions], np.array(answers)
