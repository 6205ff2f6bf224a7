// trainctl export: a trained network, or its weights, for other programs.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "cmd/export/network.h"
#include "cmd/run/trained_network.h"
#include "cmd/subcommands.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/log.h"
#include "io/checkpoint/load.h"
#include "io/checkpoint/safetensors.h"
#include "io/keras/layer_weights.h"
#include "io/onnx/file.h"
#include "io/onnx/network.h"
#include "io/weights/bfloat16_tensors.h"
#include "io/weights/layout.h"
#include "parallel/launch/report.h"

namespace trainctl {
namespace {

struct ExportOptions {
  CommonOptions common;
  std::string network;  // run directory, checkpoint or config
  std::string format;
  std::string out;  // empty: the run's name
  std::string dtype = "float32";
  bool preprocess = false;
  bool force = false;
};

// The written file, as --json and text show it.
struct Written {
  std::int64_t bytes = 0;
  std::vector<OnnxValue> inputs, outputs;  // of networks
};

// A checkpoint beside a config that was changed may be of another network.
void require_weights(const Graph& graph, const LoadedCheckpoint& checkpoint) {
  const auto stored = by_name(checkpoint.snapshot.weights);
  for (const WantedTensor& wanted : wanted_tensors(graph)) {
    const auto found = stored.find(wanted.name);
    if (found != stored.end() && found->second->shape == wanted.shape) continue;
    throw Error(ErrorKind::config, Place{checkpoint.path},
                format("holds no {} of shape {}, which the network of its run's config.yaml has", wanted.name,
                       to_string(wanted.shape)),
                "put the config there that it was trained with");
  }
}

Written write_network(const std::string& path, const RunSpec& spec, const LoadedCheckpoint& checkpoint, DType dtype,
                      bool preprocess) {
  const ExportedNetwork network = exported_network(spec, checkpoint.manifest.facts, preprocess);
  require_weights(network.graph, checkpoint);
  OnnxModel model = onnx_model(network.graph, checkpoint.snapshot.weights, network.outputs, dtype);
  const auto& facts = checkpoint.manifest.facts;
  if (const auto names = facts.find(class_names_fact); names != facts.end()) model.metadata.insert(*names);
  return {write_onnx(path, model), model.inputs, model.outputs};
}

Written write_weights(const std::string& path, const LoadedCheckpoint& checkpoint, DType dtype) {
  const std::vector<NamedTensor>& weights = checkpoint.snapshot.weights;
  const Bfloat16Tensors rounded(dtype == DType::bfloat16 ? weights : std::vector<NamedTensor>{});
  const std::vector<NamedTensor>& tensors = dtype == DType::bfloat16 ? rounded.tensors : weights;
  std::int64_t bytes = 0;
  for (const NamedTensor& tensor : tensors) bytes += tensor.view.bytes();
  write_file(path, bytes, [&](OutputFile& file) { write_safetensors(file, tensors, {{"format", "trainctl"}}); });
  return {static_cast<std::int64_t>(std::filesystem::file_size(path)), {}, {}};
}

Written write_keras_weights(const std::string& path, const RunSpec& spec, const LoadedCheckpoint& checkpoint) {
  const ExportedNetwork network = exported_network(spec, checkpoint.manifest.facts, false);
  require_weights(network.graph, checkpoint);
  const KerasLayerWeights weights(network.graph, checkpoint.snapshot.weights);
  std::int64_t bytes = 0;
  for (const NamedTensor& tensor : checkpoint.snapshot.weights) bytes += tensor.view.bytes();
  write_file(path, bytes, [&](OutputFile& file) { write_hdf5(file, weights.root()); });
  return {static_cast<std::int64_t>(std::filesystem::file_size(path)), {}, {}};
}

// "[batch, 28, 28, 1]".
std::string open_shape(const OnnxValue& value) {
  std::string text = "[batch";
  const Shape sample = value.type.shape.without_front();
  for (const std::int64_t size : sample.sizes()) text += format(", {}", size);
  return text + "]";
}

void tell(const std::string& path, const Written& written, const std::string& checkpoint,
          const ExportOptions& options) {
  if (options.common.json) {
    Json document{{"ok", true},
                  {"file", path},
                  {"format", options.format},
                  {"dtype", options.dtype},
                  {"bytes", written.bytes},
                  {"checkpoint", checkpoint}};
    for (const auto& [key, values] : {std::pair{"inputs", &written.inputs}, {"outputs", &written.outputs}}) {
      for (const OnnxValue& value : *values) {
        document[key].push_back({{"name", value.name},
                                 {"dtype", name_of(value.type.dtype)},
                                 {"sample", value.type.shape.without_front().sizes()}});
      }
    }
    answer(json_line(document));
  } else if (!options.common.quiet) {
    std::string text = format("{}: {}, {}", path, byte_text(written.bytes), options.dtype);
    for (const OnnxValue& input : written.inputs) {
      text += format(", takes {} {} {}", input.name, name_of(input.type.dtype), open_shape(input));
    }
    for (const OnnxValue& output : written.outputs) text += format(", gives {} {}", output.name, open_shape(output));
    answer(text + "\n");
  }
}

int run_export(const ExportOptions& options) {
  const bool onnx = options.format == "onnx", keras = options.format == "keras-weights";
  if (options.preprocess && !onnx) {
    throw Error(ErrorKind::config, "--preprocess is a part of a network, and this format has weights alone",
                "leave it out, or --format onnx");
  }
  if (keras && options.dtype != "float32") {
    throw Error(ErrorKind::config, "files of Keras hold float32 weights", "leave --dtype out, or --format safetensors");
  }
  const TrainedNetwork network = find_trained(options.network);
  const RunSpec spec = load_run_spec(network.run + "/config.yaml");
  const std::string path = options.out.empty() ? spec.name + "." + (keras ? "h5" : options.format) : options.out;
  require_absent(path, options.force);
  const LoadedCheckpoint checkpoint = load_named_checkpoint(network.checkpoint());
  log::info(format("exports {} (step {})", checkpoint.path, checkpoint.manifest.step));
  const DType dtype = options.dtype == "float32" ? DType::float32 : DType::bfloat16;
  const Written written = onnx    ? write_network(path, spec, checkpoint, dtype, options.preprocess)
                          : keras ? write_keras_weights(path, spec, checkpoint)
                                  : write_weights(path, checkpoint, dtype);
  tell(path, written, checkpoint.path, options);
  return 0;
}

}  // namespace

Subcommand export_subcommand() {
  return {"export", "Writes a trained network as ONNX, or its weights, for other programs",
          "trainctl export runs/flowers --format onnx\n"
          "  trainctl export runs/flowers/checkpoints/last --format safetensors --dtype bfloat16",
          [](CLI::App& app) {
            auto options = std::make_shared<ExportOptions>();
            app.add_option("RUN", options->network,
                           "A run directory or a config, for its newest run, and the best checkpoint there; or a "
                           "checkpoint's folder")
                ->required()
                ->type_name("");
            app.add_option("--format", options->format,
                           "onnx: the network with its weights, any number of samples at once; safetensors: the "
                           "weights, under trainctl's names; keras-weights: an .h5 file for "
                           "model.load_weights(FILE, by_name=True) of Keras' network of the same layers")
                ->required()
                ->check(CLI::IsMember({"onnx", "safetensors", "keras-weights"}));
            app.add_option("-o,--out", options->out,
                           "The file; default: the run's name with .onnx, .safetensors or .h5")
                ->type_name("FILE");
            app.add_option("--dtype", options->dtype,
                           "What weights are stored as: float32, or bfloat16, which halves them and rounds; a network "
                           "computes in float32 either way")
                ->check(CLI::IsMember({"float32", "bfloat16"}));
            app.add_flag("--preprocess", options->preprocess,
                         "The network begins with the crops and the scaling of the config's transforms, and takes "
                         "samples as they are stored");
            app.add_flag("--force", options->force, "Replaces a file of this name");
            add_output_options(app, options->common);
            return [options] { return run_export(*options); };
          }};
}

}  // namespace trainctl
