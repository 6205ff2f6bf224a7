// A model as the user wrote it, and its expansion into a graph.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/layers/layer_line.h"
#include "core/layers/model_input.h"
#include "core/spec/keys.h"

namespace trainctl {

// The `model` section after reading: layers with their options, presets resolved. Owned by core/layers.
struct ModelOptions;

// Inputs and outputs of a model are so many at most: kernels take a list of so many places.
inline constexpr std::size_t most_outputs = 16;

struct BuildOptions {
  std::int64_t batch = 1;                           // samples of one micro-batch
  std::vector<ModelInput> inputs = {ModelInput{}};  // as many as the model has, in its order
  bool training = true;
  DType compute = DType::float32;  // of activations: float32 or bfloat16
  std::uint64_t seed = 0;          // for dropout
  // By output: leave out a softmax or sigmoid at its end, since the loss takes logits. Empty: of none.
  std::vector<bool> logits;
};

struct BuiltModel {
  Graph graph;
  std::vector<LayerLine> layers;  // as the user wrote them
};

// Expands the layers. Impossible shapes and references are reported to the reader, each with the layer's line and the
// producer's; the result is usable only when nothing was reported.
BuiltModel build_model(const ModelOptions& model, const BuildOptions& options, Reader& reader);

// The names of inputs and outputs as the config states them; {""} for the only one that has no name.
std::vector<std::string> input_names(const ModelOptions& model);
std::vector<std::string> output_names(const ModelOptions& model);

// How many tokens there are where the network takes those from an input, samples of whole numbers below it; 0: it takes
// values.
std::int64_t token_count(const ModelOptions& model, const std::string& input);

// Whether the last op of an output is a softmax or a sigmoid: what `from_logits: auto` looks at.
enum class FinalActivation { none, softmax, sigmoid };
FinalActivation final_activation(const ModelOptions& model, std::size_t output);

}  // namespace trainctl
