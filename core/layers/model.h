// A model as the user wrote it, and its expansion into a graph.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/ops/normalize.h"
#include "core/layers/layer_line.h"
#include "core/spec/keys.h"

namespace trainctl {

// The `model` section after reading: layers with their options, presets resolved. Owned by core/layers.
struct ModelOptions;

struct BuildOptions {
  std::int64_t batch = 1;  // samples of one micro-batch
  Shape sample;            // of one input: [28, 28, 1]
  SampleFormat format;     // of inputs in a batch
  bool training = true;
  DType compute = DType::float32;  // of activations: float32 or bfloat16
  std::uint64_t seed = 0;          // for dropout
  bool logits = false;             // leave out a softmax or sigmoid at the end: the loss takes logits
};

struct BuiltModel {
  Graph graph;
  std::vector<LayerLine> layers;  // as the user wrote them
};

// Expands the layers. Impossible shapes and references are reported to the reader, each with the layer's line and the
// producer's; the result is usable only when nothing was reported.
BuiltModel build_model(const ModelOptions& model, const BuildOptions& options, Reader& reader);

// How many tokens there are where the network takes those, samples of whole numbers below it; 0: it takes values.
std::int64_t token_count(const ModelOptions& model);

// Whether the last op is a softmax or a sigmoid: what `from_logits: auto` looks at.
enum class FinalActivation { none, softmax, sigmoid };
FinalActivation final_activation(const ModelOptions& model);

}  // namespace trainctl
