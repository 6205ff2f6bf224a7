// Writes a trained network, with one function for each format.
#include "run/export/formats.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/exec/interfaces/snapshot.h"
#include "io/checkpoint/safetensors.h"
#include "io/datasets/arrays/float32.h"
#include "io/keras/layer_weights.h"
#include "io/onnx/file.h"
#include "io/onnx/network.h"
#include "io/weights/layout.h"
#include "run/export/network.h"

namespace trainctl {
namespace {

// Returns the network of the run's config, and checks that the checkpoint's weights belong to it: the config may have
// been changed since.
ExportedNetwork network_of(const ExportedRun& run) {
  ExportedNetwork network = exported_network(run.spec, run.checkpoint.manifest.metadata, run.preprocess);
  const auto stored = by_name(run.checkpoint.snapshot.weights);
  for (const WantedTensor& wanted : wanted_tensors(network.graph)) {
    const auto found = stored.find(wanted.name);
    if (found != stored.end() && found->second->shape == wanted.shape) continue;
    throw Error(ErrorKind::config, SourceLocation{run.checkpoint.path},
                format("holds no {} of shape {}, which the network of its run's config.yaml has", wanted.name,
                       to_string(wanted.shape)),
                "restore the config.yaml that it was trained with");
  }
  return network;
}

ExportedFile write_network(const std::string& path, const ExportedRun& run) {
  const ExportedNetwork network = network_of(run);
  OnnxModel model = onnx_model(network.graph, run.checkpoint.snapshot.weights, network.outputs, run.dtype);
  if (network.stored && !network.stored->steps.empty()) {
    const StoredInput& stored = *network.stored;
    prepend_image_steps(model, {model.inputs[0].name, {stored.sample.with_front(1), stored.dtype}, stored.any_size},
                        stored.steps);
  }
  const auto& metadata = run.checkpoint.manifest.metadata;
  if (const auto names = metadata.find(class_names_key); names != metadata.end()) model.metadata.insert(*names);
  return {write_onnx(path, model), model.inputs, model.outputs};
}

// Copies of float32 tensors, rounded to bfloat16.
class Bfloat16Tensors {
 public:
  explicit Bfloat16Tensors(std::span<const NamedTensor> from) {
    for (const NamedTensor& tensor : from) {
      const auto* values = tensor.view.as<const float>();
      std::vector<std::uint16_t>& bits = memory_.emplace_back(static_cast<std::size_t>(tensor.view.count));
      std::transform(values, values + tensor.view.count, bits.begin(), to_bfloat16);
      tensors.push_back(tensor);
      tensors.back().view = {bits.data(), DType::bfloat16, tensor.view.count};
    }
  }
  Bfloat16Tensors(const Bfloat16Tensors&) = delete;
  Bfloat16Tensors& operator=(const Bfloat16Tensors&) = delete;

  std::vector<NamedTensor> tensors;

 private:
  std::vector<std::vector<std::uint16_t>> memory_;
};

// Writes a file of tensors by calling `write(file)`.
template <class Write>
ExportedFile write_tensors(const std::string& path, const std::vector<NamedTensor>& tensors, const Write& write) {
  std::int64_t bytes = 0;
  for (const NamedTensor& tensor : tensors) bytes += tensor.view.bytes();
  write_file(path, bytes, write);
  return {static_cast<std::int64_t>(std::filesystem::file_size(path)), {}, {}};
}

ExportedFile write_weights(const std::string& path, const ExportedRun& run) {
  const bool rounds = run.dtype == DType::bfloat16;
  const std::vector<NamedTensor>& exact = run.checkpoint.snapshot.weights;
  const Bfloat16Tensors rounded(rounds ? exact : std::vector<NamedTensor>{});
  const std::vector<NamedTensor>& tensors = rounds ? rounded.tensors : exact;
  return write_tensors(path, tensors, [&](OutputFile& file) {
    write_safetensors(file, tensors, {{"format", "trainctl"}});
  });
}

ExportedFile write_keras_weights(const std::string& path, const ExportedRun& run) {
  const std::vector<NamedTensor>& tensors = run.checkpoint.snapshot.weights;
  const ExportedNetwork network = network_of(run);
  const KerasLayerWeights weights(network.graph, network.layers, network.blocks, tensors);
  return write_tensors(path, tensors, [&](OutputFile& file) { write_hdf5(file, weights.root()); });
}

}  // namespace

const std::vector<ExportFormat>& export_formats() {
  static const std::vector<ExportFormat> formats{{"onnx", ".onnx", true, true, write_network},
                                                 {"safetensors", ".safetensors", false, true, write_weights},
                                                 {"keras-weights", ".h5", false, false, write_keras_weights},
                                                 {"huggingface", "-huggingface", false, true, write_hugging_face}};
  return formats;
}

}  // namespace trainctl
