#!/usr/bin/env python3
"""Writes the golden values into the folder of this script: PyTorch's results for the cases of test/core/ops.

    python3 -m venv venv && venv/bin/pip install torch keras numpy safetensors
    venv/bin/python test/golden/make_golden.py

PyTorch computes in float64 and in Keras' conventions: images NHWC, kernels (height, width, in / groups, out) or
(in, out), padding `same` with the odd pixel at the end, averages that do not count padding, leaky_relu's slope 0.3.
Inputs, parameters and incoming gradients are random numbers that bfloat16 can represent, so that one set of values
serves for float32 and bfloat16. Results are rounded to float32.

For each case, ops.safetensors has CASE/in0..., CASE/out0..., the incoming gradient CASE/dout of out0 and the
gradients CASE/din0... of those inputs that have one. Whole networks: make_training.py.
"""
import cases
from attention import additive_attention, attention
from convolutions import convolution, pooling
from layers import (borders, dense, einsum_dense, element_wise, embedding, gated_linear_units, parametric_relu,
                    position_embeddings, products, recurrent, rotary)
from losses import losses
from metrics import crossentropy_metrics, metrics, sequence_metrics
from normalisations import group_normalisation, layer_normalisation, normalisation
from optimizer_steps import optimizer_steps
from randomness import randomness

if __name__ == "__main__":
    for part in (element_wise, embedding, dense, convolution, pooling, normalisation, layer_normalisation, recurrent,
                 attention, additive_attention, group_normalisation, parametric_relu, borders, gated_linear_units, rotary,
                 position_embeddings, einsum_dense, products, randomness, losses, metrics, crossentropy_metrics,
                 sequence_metrics, optimizer_steps):
        part()
    cases.save()
