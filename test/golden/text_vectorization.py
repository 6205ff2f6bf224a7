#!/usr/bin/env python3
"""Makes test/golden/text_vectorization.json: vocabularies and numbers of random texts by Keras' TextVectorization. Needs
tensorflow and keras.

    python3 test/golden/text_vectorization.py
"""
import json
import pathlib
import random

import keras
import tensorflow as tf

WORDS = ["The", "cat", "cat's", "dog", "DOG", "don't", "a-b", "1,000", "café", "CAFÉ", "naïve", "中文", "😀", "x_y", "[UNK]",
         "[unk]", "e.g.", "(so)", "\u00a0gap\u2003wide", "ß", "\"quoted\"", "end!", "...", "--", "#tag", "a", "b", "c", "d"]
SPACES = [" ", " ", " ", "  ", "\n", "\t", "\r\n", " \v ", "\f"]


def text(numbers):
    return "".join(numbers.choice(WORDS) + numbers.choice(SPACES) for _ in range(numbers.randrange(0, 14)))


def case(seed, standardize, max_tokens, positions):
    numbers = random.Random(seed)
    training = [text(numbers) for _ in range(40)]
    texts = training[:10] + [text(numbers) + " unseen " + text(numbers) for _ in range(10)]
    layer = keras.layers.TextVectorization(max_tokens=max_tokens, standardize=standardize,
                                           output_sequence_length=positions)
    layer.adapt(tf.constant(training))
    return {"standardize": standardize or "none", "max_tokens": max_tokens, "positions": positions, "training": training,
            "texts": texts, "vocabulary": layer.get_vocabulary(), "numbers": layer(tf.constant(texts)).numpy().tolist()}


cases = [case(1, "lower_and_strip_punctuation", None, 12), case(2, "lower_and_strip_punctuation", 9, 5),
         case(3, "lower", None, 20), case(4, "strip_punctuation", 15, 8), case(5, None, None, 7), case(6, None, 4, 3)]
path = pathlib.Path(__file__).with_suffix(".json")
path.write_text(json.dumps({"keras": keras.__version__, "tensorflow": tf.__version__, "cases": cases}, indent=0) + "\n")
