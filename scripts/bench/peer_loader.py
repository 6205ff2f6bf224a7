"""Measures loading a folder of JPEG images in TensorFlow and PyTorch: decode, crop, flip and normalise, in batches.

Usage: peer_loader.py make FOLDER IMAGES | tf|torch FOLDER WORKERS SECONDS float|bytes
`make` writes images of 256x256 in two classes. The images are noise with the spectrum of photographs. `tf` and `torch` print one
JSON line: {"images_per_second", "version"}. With `bytes` the batches contain bytes, which a device would normalise.
"""
import json
import os
import pathlib
import sys
import time

BATCH, SIZE, CROP = 64, 256, 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def make(folder, count):
    import numpy
    from PIL import Image

    random = numpy.random.default_rng(1)
    y, x = numpy.meshgrid(numpy.fft.fftfreq(SIZE), numpy.fft.fftfreq(SIZE), indexing="ij")
    fall = 1 / numpy.maximum(numpy.hypot(y, x), 1 / SIZE)
    for i in range(count):
        def noise():
            return numpy.fft.ifft2(numpy.fft.fft2(random.standard_normal((SIZE, SIZE))) * fall).real
        grey, colours = noise(), numpy.stack([noise() for _ in range(3)], 2)
        image = grey[:, :, None] + 0.4 * colours
        pixels = numpy.clip(127 + 55 * image / image.std(), 0, 255).astype(numpy.uint8)
        path = pathlib.Path(folder, "ab"[i % 2], f"{i:05}.jpg")
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path, quality=85)


def rate(batches, seconds):
    """Returns the images/s of an endless iterator of batches, after a warm-up of the same duration."""
    def take(limit):
        images, start = 0, time.perf_counter()
        while time.perf_counter() - start < limit:
            images += len(next(batches))
        return images / (time.perf_counter() - start)
    take(seconds / 2)
    return take(seconds / 2)


def with_tensorflow(folder, workers, seconds, floats):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    files = sorted(str(path) for path in pathlib.Path(folder).glob("*/*.jpg"))
    labels = [path.split("/")[-2] == "b" for path in files]

    def load(path, label):
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        image = tf.image.random_flip_left_right(tf.image.random_crop(image, [CROP, CROP, 3]))
        if floats:
            image = (tf.cast(image, tf.float32) / 255 - MEAN) / STD
        return image, label

    data = tf.data.Dataset.from_tensor_slices((files, labels)).shuffle(len(files)).repeat()
    data = data.map(load, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH).prefetch(tf.data.AUTOTUNE)
    threads = tf.data.Options()
    threads.threading.private_threadpool_size = workers
    iterator = iter(data.with_options(threads))
    return rate((images for images, _ in iterator), seconds), tf.__version__


def with_torch(folder, workers, seconds, floats):
    import torch
    from torchvision import datasets, transforms

    torch.set_num_threads(1)
    steps = [transforms.RandomCrop(CROP), transforms.RandomHorizontalFlip()]
    steps += [transforms.ToTensor(), transforms.Normalize(MEAN, STD)] if floats else [transforms.PILToTensor()]
    loader = torch.utils.data.DataLoader(datasets.ImageFolder(folder, transforms.Compose(steps)), BATCH, shuffle=True,
                                         num_workers=workers, persistent_workers=True, prefetch_factor=4)

    def endless():
        while True:
            for images, _ in loader:
                yield images
    return rate(endless(), seconds), torch.__version__


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], int(sys.argv[3]))
    else:
        measure = {"tf": with_tensorflow, "torch": with_torch}[sys.argv[1]]
        speed, version = measure(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), sys.argv[5] == "float")
        print(json.dumps({"images_per_second": speed, "version": version}))
