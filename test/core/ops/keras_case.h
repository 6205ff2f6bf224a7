// Compares losses, metrics and gradients of networks with the values of a golden file in the format of
// test/golden/keras_masks.py.
#pragma once

#include <string>

#include "test/core/ops/golden.h"

namespace trainctl::test {

struct KerasCase {
  const char* name;
  std::string model;  // YAML
  const char* loss = "{name: sparse_categorical_crossentropy, from_logits: true}";
};

// Checks a step of the case with one and with two micro-batches. The model is that of a config: {layers: [...]}.
void check_model(const Golden& golden, const KerasCase& which);

// Checks a case whose model is a list of layers, without the brackets.
void check_layers(const Golden& golden, const KerasCase& which);

}  // namespace trainctl::test
