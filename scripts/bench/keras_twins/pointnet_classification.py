"""Point cloud classification with PointNet: dense layers of each point, and the largest values over all points."""
import keras
from keras import layers, ops

LEARNING_RATE = 1e-4  # the network has many kinks, and float32 soon leaves the path of float64 with a larger one


def data(random, samples):
    sizes = random.uniform(0.2, 2, (samples, 1, 3))
    points = random.uniform(-1, 1, (samples, 256, 3)) * sizes + random.normal(size=sizes.shape)
    return points.astype("float32"), random.integers(0, 10, samples)


def normalized(x, layer, norm):
    return layers.ReLU()(layers.BatchNormalization(momentum=0, name=norm)(layer(x)))


def transformed(x, name):
    """Multiplies the points by a matrix that a small network computes from them."""
    size, y = x.shape[-1], x
    for i, filters in enumerate((32, 64, 512), 1):
        y = normalized(y, layers.Conv1D(filters, 1, name=f"{name}_conv{i}"), f"{name}_norm{i}")
    y = layers.GlobalMaxPooling1D()(y)
    for i, units in enumerate((256, 128), 1):
        y = normalized(y, layers.Dense(units, name=f"{name}_dense{i}"), f"{name}_norm{i + 3}")
    matrix = layers.Dense(size**2, kernel_initializer=keras.initializers.RandomNormal(stddev=0.01), name=name)(y)
    return x + ops.matmul(x, layers.Reshape((size, size))(matrix))


def network():
    points = layers.Input((256, 3))
    x = transformed(points, "turn")
    for i, filters in enumerate((32, 32, 32, 64, 512), 1):
        x = normalized(x, layers.Conv1D(filters, 1, name=f"conv{i}"), f"norm{i}")
        if i == 2:
            x = transformed(x, "mix")
    x = layers.GlobalMaxPooling1D()(x)
    for i, units in enumerate((256, 128), 1):
        x = layers.Dropout(0.3)(normalized(x, layers.Dense(units, name=f"dense{i}"), f"norm{i + 5}"))
    return keras.Model(points, layers.Dense(10, activation="softmax", name="predictions")(x)), "sparse_categorical_crossentropy"
