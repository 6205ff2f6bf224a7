// A model as the user wrote it, and its expansion into a graph.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/layers/model/layer_line.h"
#include "core/layers/model/model_input.h"
#include "core/spec/keys.h"

namespace trainctl {

// The `model` section after reading: layers with their options, presets resolved. Defined in
// core/layers/model/model_options.h.
struct ModelOptions;

// The most inputs, and the most outputs, of a model: kernels take a list of at most this many tensors.
inline constexpr std::size_t most_outputs = 16;

struct BuildOptions {
  std::int64_t batch = 1;                           // samples of one micro-batch
  std::vector<ModelInput> inputs = {ModelInput{}};  // by the model's order of inputs
  bool training = true;
  DType compute = DType::float32;  // of activations: float32 or bfloat16
  std::uint64_t seed = 0;          // for dropout
  // By output: whether the softmax or sigmoid at its end is left out because the loss takes logits. Empty: no output.
  std::vector<bool> logits;
};

struct BuiltModel {
  Graph graph;
  std::vector<LayerLine> layers;  // one line for each layer that the user wrote
  std::set<std::string> blocks;   // paths of residual blocks and of the bodies of repeats: "block1", "repeat/0"
};

// Expands the layers into a graph. Impossible shapes and references are reported to the reader, each with the lines of
// the layer and of the layer whose output it takes. The result is usable only where nothing was reported.
BuiltModel build_model(const ModelOptions& model, const BuildOptions& options, Reader& reader);

// The names of the model's inputs and outputs as the config states them; {""} for a single one without a name.
std::vector<std::string> input_names(const ModelOptions& model);
std::vector<std::string> output_names(const ModelOptions& model);

// The number of tokens, for a model whose input `input` is whole numbers from 0 to below it; 0 where the input is
// values.
std::int64_t token_count(const ModelOptions& model, const std::string& input);

// The activation at the end of an output, from which a loss resolves `from_logits: auto`.
enum class FinalActivation { none, softmax, sigmoid };
FinalActivation final_activation(const ModelOptions& model, std::size_t output);

}  // namespace trainctl
