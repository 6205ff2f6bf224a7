# Trains ResNet-20 (He et al., 2015) on CIFAR-10 with the paper's augmentation. The images are in folders below
# $TRAINCTL_DATA/cifar10.
import os

import keras
import tensorflow as tf
from keras import layers

BATCH, EPOCHS, WARMUP = 128, 2, 100
MEAN, STD = [125.2, 122.9, 114.0], [63.0, 61.9, 66.8]


def images(part):
    folder = f"{os.environ['TRAINCTL_DATA']}/cifar10/{part}"
    files = keras.utils.image_dataset_from_directory(folder, image_size=(32, 32), batch_size=None, shuffle=False)
    return files.map(lambda x, y: ((x - MEAN) / STD, y), num_parallel_calls=tf.data.AUTOTUNE).cache()


def augment(x, y):
    x = tf.image.random_crop(tf.pad(x, [[4, 4], [4, 4], [0, 0]]), (32, 32, 3))
    return tf.image.random_flip_left_right(x), y


train, test = images("train"), images("test")
train = train.shuffle(train.cardinality()).map(augment, num_parallel_calls=tf.data.AUTOTUNE)
train = train.batch(BATCH).prefetch(tf.data.AUTOTUNE)
steps = EPOCHS * train.cardinality().numpy()
test = test.batch(BATCH).prefetch(tf.data.AUTOTUNE)


def convolution(x, filters, size, strides=1):
    x = layers.Conv2D(filters, size, strides, "same", use_bias=False, kernel_initializer="he_normal")(x)
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)


def block(x, filters, strides):
    y = layers.ReLU()(convolution(x, filters, 3, strides))
    y = convolution(y, filters, 3)
    if strides > 1:
        x = convolution(x, filters, 1, strides)
    return layers.ReLU()(layers.Add()([x, y]))


inputs = keras.Input((32, 32, 3))
x = layers.ReLU()(convolution(inputs, 16, 3))
for filters in (16, 32, 64):
    for i in range(3):
        x = block(x, filters, 2 if filters > 16 and i == 0 else 1)
x = layers.GlobalAveragePooling2D()(x)
model = keras.Model(inputs, layers.Dense(10, activation="softmax", kernel_initializer="he_normal")(x))
rate = keras.optimizers.schedules.CosineDecay(0.0, steps - WARMUP, warmup_target=0.1, warmup_steps=WARMUP)
model.compile(optimizer=keras.optimizers.SGD(rate, momentum=0.9, nesterov=True), loss="sparse_categorical_crossentropy",
              metrics=["accuracy"])
model.fit(train, epochs=EPOCHS, validation_data=test)
