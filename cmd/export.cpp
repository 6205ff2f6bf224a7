// trainctl export: writes a trained network, or its weights, in a format of other programs.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cmd/common_options.h"
#include "cmd/one_of.h"
#include "cmd/subcommands.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/log.h"
#include "parallel/launch/ranks/report.h"
#include "run/config_use.h"
#include "run/export/formats.h"
#include "run/job/pretrained.h"
#include "run/job/trained_network.h"

namespace trainctl {
namespace {

struct ExportOptions {
  CommonOptions common;
  std::string network;  // run directory, checkpoint or config
  std::string format;
  std::string out;  // empty: the run's name with the format's ending
  std::string dtype = "float32";
  bool preprocess = false;
  bool force = false;
};

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const ExportFormat& format : export_formats()) names.push_back(format.name);
  return names;
}

// "[batch, 28, 28, 1]".
std::string open_shape(const OnnxValue& value) {
  std::string text = "[batch";
  if (value.any_size) text += ", height, width";
  for (std::int64_t k = value.any_size ? 3 : 1; k < value.type.shape.rank(); ++k) {
    text += format(", {}", value.type.shape[k]);
  }
  return text + "]";
}

void tell(const std::string& path, const ExportedFile& written, const std::string& checkpoint,
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
      text += format(", accepts {} {} {}", input.name, name_of(input.type.dtype), open_shape(input));
    }
    for (const OnnxValue& output : written.outputs) text += format(", returns {} {}", output.name, open_shape(output));
    answer(text + "\n");
  }
}

// The folders from which the network is read.
std::vector<std::string> inputs_of(const TrainedNetwork& network, const RunSpec& spec) {
  if (network.is_untrained()) return {spec.model.weights->file.value.text};
  return {network.run, network.path};
}

int run_export(const ExportOptions& options) {
  const std::vector<ExportFormat>& formats = export_formats();
  const ExportFormat& chosen = *std::find_if(formats.begin(), formats.end(),
                                             [&](const ExportFormat& format) { return format.name == options.format; });
  if (options.preprocess && !chosen.network) {
    throw Error(ErrorKind::config, "--preprocess adds the transforms to the network, and this format cannot hold them",
                "leave it out, or use --format onnx");
  }
  const bool rounds = options.dtype == "bfloat16";
  if (rounds && !chosen.bfloat16) {
    throw Error(ErrorKind::config, "this format stores float32 weights alone",
                "leave --dtype out, or use --format safetensors");
  }
  const TrainedNetwork network = find_trained(options.network);
  ConfigFiles files;
  RunSpec spec = load_run_spec(network.config(), {}, files, ConfigUse::prediction);
  const std::string path = options.out.empty() ? spec.name + chosen.ending : options.out;
  require_not_input("--out", path, inputs_of(network, spec));
  require_not_input("--out", path, {network.config()});
  if (!network.is_untrained()) require_not_input("--out", path, files_of_run(network.run));
  require_absent(path, options.force);
  NetworkWeights weights = network.load(spec, "exports");
  const ExportedRun run{std::move(spec), std::move(weights.checkpoint), rounds ? DType::bfloat16 : DType::float32,
                        options.preprocess};
  tell(path, chosen.write(path, run), run.checkpoint.path, options);
  return 0;
}

}  // namespace

Subcommand export_subcommand() {
  return {
      "export", "Writes a trained network as ONNX or as a Hugging Face folder, or its weights, for other programs",
      "trainctl export runs/flowers --format onnx\n"
      "  trainctl export runs/flowers/checkpoints/last --format safetensors --dtype bfloat16\n"
      "  trainctl export runs/story --format huggingface",
      [](CLI::App& app) {
        auto options = std::make_shared<ExportOptions>();
        app.add_option("RUN", options->network,
                       "A run directory, or a config for its newest run, whose best checkpoint is used; or a "
                       "checkpoint's folder")
            ->required()
            ->type_name("");
        app.add_option("--format", options->format,
                       "onnx: the network with its weights, any number of samples at once; safetensors: the "
                       "weights, under trainctl's names; keras-weights: an .h5 file for "
                       "model.load_weights(FILE, by_name=True) of Keras' network of the same layers; huggingface: a "
                       "folder for from_pretrained(FOLDER) of transformers, from a network of the preset bert, gpt2, "
                       "llama or vit_b16")
            ->required()
            ->check(one_of(format_names()));
        app.add_option("-o,--out", options->out,
                       "The file; default: the run's name with .onnx, .safetensors, .h5 or -huggingface")
            ->type_name("FILE");
        app.add_option("--dtype", options->dtype,
                       "The dtype of the stored weights: float32, or bfloat16, which is rounded and half as large; a "
                       "network computes in float32 either way")
            ->check(one_of({"float32", "bfloat16"}));
        app.add_flag("--preprocess", options->preprocess,
                     "The network begins with the resizes, crops and scaling of the config's transforms, and accepts "
                     "samples as they are stored: of any size if the first step is `resize: [height, width]`, else "
                     "of the size of the first training sample");
        app.add_flag("--force", options->force,
                     "Replaces the file if it exists; of a folder, the files of the network");
        add_output_options(app, options->common);
        return [options] { return run_export(*options); };
      }};
}

}  // namespace trainctl
