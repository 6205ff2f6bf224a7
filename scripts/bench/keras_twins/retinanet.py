"""Object detection with RetinaNet: two heads read each level of a pyramid of features, and the focal loss judges the classes of anchors."""
import keras
import numpy as np
from keras import layers, ops

from twin_support import images

ANCHORS, CLASSES = 9 * (8 * 4 + 4 * 2), 2
LEARNING_RATE = 0.01


def data(random, samples):
    kinds = random.choice(4, (samples, ANCHORS), p=[0.03, 0.03, 0.84, 0.1])  # two classes, background, and anchors to ignore
    classes = np.array([[1, 0], [0, 1], [0, 0], [-1, -1]])[kinds]
    return images(random, samples, 64, 32), np.concatenate([random.normal(size=(samples, ANCHORS, 4)), classes], 2).astype("float32")


def detection_loss(anchors, outputs):
    boxes, classes = anchors[..., :4], anchors[..., 4:]
    probability = ops.sigmoid(outputs[..., 4:])
    right = ops.where(classes == 1, probability, 1 - probability)
    focal = ops.where(classes == 1, 0.25, 0.75) * (1 - right) ** 2 * -ops.log(right)
    difference = ops.abs(boxes - outputs[..., :4])
    huber = ops.where(difference < 1, difference**2 / 2, difference - 0.5)
    found = ops.any(classes == 1, 2, keepdims=True)
    total = ops.sum(ops.where(classes == -1, 0, focal), (1, 2)) + ops.sum(ops.where(found, huber, 0), (1, 2))
    return total / ops.maximum(ops.sum(ops.cast(found, total.dtype), (1, 2)), 1)


def head(name, filters, output):
    return [layers.Conv2D(64, 3, padding="same", activation="relu", name=f"{name}_conv{i}") for i in (1, 2)] + [
        layers.Conv2D(9 * filters, 3, padding="same", name=f"{name}_{output}"), layers.Reshape((-1, filters))]


def network():
    photo = layers.Input((64, 32, 3))
    x = layers.Conv2D(32, 3, 2, padding="same", activation="relu", name="stem")(layers.Rescaling(1 / 255)(photo))
    c3 = layers.Conv2D(64, 3, 4, padding="same", activation="relu", name="c3")(x)
    c4 = layers.Conv2D(128, 3, 2, padding="same", activation="relu", name="c4")(c3)
    coarse = layers.Conv2D(64, 1, name="lateral4")(c4)
    fine = layers.Add()([layers.Conv2D(64, 1, name="lateral3")(c3), layers.UpSampling2D()(coarse)])
    levels = [layers.Conv2D(64, 3, padding="same", name="p3")(fine), layers.Conv2D(64, 3, padding="same", name="p4")(coarse)]
    outputs = []
    for shared in (head("box", 4, "values"), head("class", CLASSES, "logits")):
        read = []
        for x in levels:
            for layer in shared:
                x = layer(x)
            read.append(x)
        outputs.append(layers.Concatenate(1)(read))
    return keras.Model(photo, layers.Concatenate()(outputs)), detection_loss
