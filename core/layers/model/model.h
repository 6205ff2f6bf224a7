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

// The largest number of inputs and of outputs of a model: kernels accept at most this many tensors in a list.
inline constexpr std::size_t max_outputs = 16;

struct BuildOptions {
  std::int64_t batch = 1;                           // samples of one micro-batch
  std::vector<ModelInput> inputs = {ModelInput{}};  // in the order of the model's inputs
  bool training = true;
  DType compute = DType::float32;  // dtype of activations: float32 or bfloat16
  std::uint64_t seed = 0;          // seed of dropout
  // For each output: whether the softmax or sigmoid at its end is left out because the loss reads logits. Empty: left
  // out for no output.
  std::vector<bool> logits;
};

struct BuiltModel {
  Graph graph;
  std::vector<LayerLine> layers;  // one line for each layer that the user wrote
  std::set<std::string> blocks;   // paths of residual blocks and of the bodies of repeats: "block1", "repeat/0"
  std::vector<std::vector<TensorId>> added_losses;  // the tensors that each of the model's added losses reads
};

// Expands the layers into a graph. Invalid shapes and references are reported to the reader, each with the config lines
// of the layer and of the layer that produces its input. The result is usable only if no error was reported.
BuiltModel build_model(const ModelOptions& model, const BuildOptions& options, Reader& reader);

// Whether a loss of the model depends on all samples of a batch together (AddedLoss::whole_batch).
bool has_whole_batch_loss(const ModelOptions& model);

// Whether an added loss of the model reads the targets of an output.
bool adds_loss_of_targets(const ModelOptions& model, const std::string& output);

// The names of the model's inputs and outputs in the config; {""} for a single input or output without a name.
std::vector<std::string> input_names(const ModelOptions& model);
std::vector<std::string> output_names(const ModelOptions& model);

// The size of the vocabulary if the model's input `input` holds tokens, which are whole numbers from 0 to below that
// size; 0 if the input holds values.
std::int64_t token_count(const ModelOptions& model, const std::string& input);

// The activation at the end of an output, from which a loss resolves `from_logits: auto`.
enum class FinalActivation { none, softmax, sigmoid };
FinalActivation final_activation(const ModelOptions& model, std::size_t output);

}  // namespace trainctl
