#!/usr/bin/env python3
"""Tests scripts/bench/step-model on a small network whose bytes and FLOPs are counted by hand:
step_model_test.py FOLDER_OF_TRAINCTL."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/bench/step-model"
PROGRAMS = pathlib.Path(sys.argv.pop()) if len(sys.argv) > 1 else pathlib.Path("build/release")
CONFIG = """
name: small
data: {dataset: synthetic, shape: [8, 8, 3], classes: 10, samples: 64}
model:
  layers:
    - conv2d: {name: c1, filters: 16, kernel_size: 3, padding: same, use_bias: false}
    - batch_normalization: {name: n1}
    - activation: relu
    - residual:
        layers:
          - conv2d: {name: c2, filters: 16, kernel_size: 1, use_bias: false}
          - batch_normalization: {name: n2}
        activation: relu
    - flatten
    - dense: {name: d, units: 10}
train:
  batch_size: 4
  epochs: 1
  loss: sparse_categorical_crossentropy
  precision: bfloat16
  optimizer: {name: sgd, learning_rate: 0.1, momentum: 0.9}
"""
PIXELS = 4 * 8 * 8
IMAGES = PIXELS * 16 * 2  # bytes of a feature map
BITS = PIXELS * 16 // 8  # bytes of relu's mask
VECTOR = 16 * 4  # bytes of a vector with a value for each channel


class StepModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.config = pathlib.Path(cls.folder.name, "small.yaml")
        cls.config.write_text(CONFIG, encoding="utf-8")
        cls.h100 = cls.model("--json")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def call(cls, *words):
        return subprocess.run([sys.executable, SCRIPT, cls.config, "--programs", PROGRAMS, *words], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=100)

    @classmethod
    def model(cls, *words):
        finished = cls.call(*words)
        assert finished.returncode == 0, finished.stderr
        return json.loads(finished.stdout)

    def op(self, layer, kind):
        found = [op for op in self.h100["ops"] if (op["layer"].split("/")[-1], op["op"]) == (layer, kind)]
        self.assertEqual(len(found), 1, (layer, kind, [(op["layer"], op["op"]) for op in self.h100["ops"]]))
        return found[0]

    def test_products(self):
        forward = self.op("c1", "conv2d")
        self.assertEqual(forward["flops"], 2 * PIXELS * 16 * 27)
        padded = PIXELS * 8 * 2
        self.assertEqual(forward["bytes"], PIXELS * 3 * 2 + 27 * 16 * 2 + IMAGES + 2 * padded)
        weights = self.op("c1", "conv2d_grad_weights")
        self.assertEqual(weights["flops"], forward["flops"])
        self.assertEqual(weights["bytes"], PIXELS * 3 * 2 + IMAGES + 27 * 16 * (4 + 2 + 2) + 2 * padded)
        self.assertEqual(self.op("c2", "conv2d_grad_input")["flops"], 2 * PIXELS * 16 * 16)
        self.assertEqual(self.op("d", "dense")["flops"], 2 * 4 * 1024 * 10)

    def test_batch_norm_reads_x_twice(self):
        self.assertEqual(self.op("n1", "batch_norm")["bytes"], 3 * IMAGES + 4 * VECTOR)
        self.assertEqual(self.op("n2", "batch_norm")["bytes"], 4 * IMAGES + BITS + 4 * VECTOR)
        self.assertEqual(self.op("n1", "batch_norm_grad")["bytes"], 5 * IMAGES + 6 * VECTOR)
        self.assertEqual(self.op("n2", "batch_norm_grad")["bytes"], 6 * IMAGES + BITS + 5 * VECTOR)

    def test_sums(self):
        for key in ("bytes", "flops", "seconds"):
            self.assertAlmostEqual(sum(row[key] for row in self.h100["sums"].values()), sum(op[key] for op in self.h100["ops"]))
        self.assertAlmostEqual(self.h100["step_seconds"], sum(op["seconds"] for op in self.h100["ops"]))
        self.assertEqual(self.h100["samples"], 4)
        self.assertAlmostEqual(self.h100["samples_per_second"] * self.h100["step_seconds"], 4)
        self.assertEqual(set(self.h100["sums"]), {"products forward", "input gradients", "weight gradients", "batch norm forward",
                                                  "batch norm backward", "update", "rest"})

    def test_other_devices_and_numbers(self):
        slow = self.model("--json", "--bandwidth", "0.001", "--launch-microseconds", "0", "--memory-share", "1")
        for op in slow["ops"]:
            self.assertAlmostEqual(op["seconds"], op["bytes"] / 1e9)
        self.assertLess(self.model("--json", "--gpu", "A100")["device"]["half"], self.h100["device"]["half"])
        more = self.model("--json", "--set", "train.batch_size=8")
        self.assertEqual(more["samples"], 8)
        text = self.call().stdout
        for word in ("c1", "batch_norm_grad", "sum of", "assumed:", "H100: 3.35 TB/s"):
            self.assertIn(word, text)

    def test_an_invalid_model_is_an_error(self):
        finished = self.call("--set", "model.layers=3")
        self.assertNotEqual(finished.returncode, 0)
        self.assertIn("model.layers", finished.stderr)


if __name__ == "__main__":
    unittest.main()
