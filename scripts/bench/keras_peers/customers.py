# Predicts which customers leave from the table in $TRAINCTL_DATA/customers. Its columns have numbers and words, and some values
# are missing.
import os

import keras
import pandas as pd
from keras import layers

train, test = (pd.read_csv(f"{os.environ['TRAINCTL_DATA']}/customers/{part}.csv") for part in ("train", "validation"))
y_train, y_test = (table.pop("left").eq("yes").astype("float32") for table in (train, test))

numbers = train.select_dtypes("number").columns
fill = train[numbers].mean()
mean, deviation = train[numbers].fillna(fill).mean(), train[numbers].fillna(fill).std(ddof=0)
words = pd.get_dummies(train.drop(columns=numbers)).columns


def features(table):
    scaled = (table[numbers].fillna(fill) - mean) / deviation
    one_hot = pd.get_dummies(table.drop(columns=numbers)).reindex(columns=words, fill_value=0)
    return pd.concat([scaled, one_hot], axis=1).to_numpy("float32")


model = keras.Sequential([
    keras.Input((len(numbers) + len(words),)),
    layers.Dense(64, activation="relu"),
    layers.Dropout(0.2),
    layers.Dense(64, activation="relu"),
    layers.Dense(1, activation="sigmoid"),
])
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy", "auc"])
model.fit(features(train), y_train, batch_size=64, epochs=20, validation_data=(features(test), y_test))
