"""Runs a user's Keras script unchanged with a given seed. Prints one JSON line with the time and the results of its fit().

Usage: run.py SCRIPT SEED JIT   (JIT: off, or auto, which is Keras' default and compiles with XLA)
"""
import json
import math
import os
import runpy
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras

script, seed, jit = sys.argv[1:]
keras.utils.set_random_seed(int(seed))
compile_model, fit = keras.Model.compile, keras.Model.fit


def chosen_compile(model, *arguments, **options):
    compile_model(model, *arguments, jit_compile=jit if jit == "auto" else False, **options)


def timed_fit(model, *arguments, **options):
    start = time.perf_counter()
    history = fit(model, *arguments, verbose=2, **options).history
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "parameters": sum(math.prod(w.shape) for w in model.trainable_weights),
                      "version": keras.__version__, "values": {name: values[-1] for name, values in history.items()}}))


keras.Model.compile, keras.Model.fit = chosen_compile, timed_fit
runpy.run_path(script, run_name="__main__")
