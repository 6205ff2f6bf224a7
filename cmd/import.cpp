// trainctl import: converts a network that Keras saved into a config and a file of weights, and writes a config for the
// network in a Hugging Face folder.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>

#include "cmd/common_options.h"
#include "cmd/subcommands.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/table.h"
#include "core/spec/units.h"
#include "io/checkpoint/safetensors.h"
#include "io/keras/import.h"
#include "parallel/launch/ranks/report.h"
#include "run/import/hugging_face.h"

namespace trainctl {
namespace {

struct ImportOptions {
  CommonOptions common;
  std::string file;
  std::string folder = ".";
  std::vector<std::string> input_shapes;
  bool force = false;
};

// Reads a shape such as "572,572,1".
Shape shape_of(const std::string& text) {
  std::vector<std::int64_t> sizes;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::optional<std::int64_t> size = parse_integer(part);
    if (!size || *size < 1) {
      throw Error(ErrorKind::config, format("--input-shape {}: must be positive sizes such as 224,224,3", text));
    }
    sizes.push_back(*size);
  }
  return Shape(std::move(sizes));
}

// Writes a config that refers to a Hugging Face folder.
int import_folder(const ImportOptions& options) {
  if (!options.input_shapes.empty()) {
    throw Error(ErrorKind::config, "--input-shape is for networks of Keras", "leave it out");
  }
  namespace fs = std::filesystem;
  const std::string path = (fs::path(options.folder) / (imported_name(options.file) + ".yaml")).string();
  require_not_input("-o", path, all_files_in(options.file));
  require_absent(path, options.force);
  const HuggingFaceImport network = import_hugging_face(options.file, options.folder);
  create_folders(options.folder);
  write_file(path, network.config);
  if (options.common.json) {
    answer(json_line(Json{{"ok", true},
                          {"config", path},
                          {"weights", options.file},
                          {"preset", network.preset},
                          {"layers", network.layers},
                          {"parameters", network.parameters},
                          {"notes", network.notes}}));
  } else if (!options.common.quiet) {
    std::string text = format("{}: preset {}, {}, whose values are in {}\n", path, network.preset,
                              counted(network.parameters, "parameter"), options.file);
    for (const std::string& note : network.notes) text += note + "\n";
    answer(text);
  }
  return 0;
}

int run_import(const ImportOptions& options) {
  if (is_folder(options.file)) return import_folder(options);
  const std::string stem = std::filesystem::path(options.file).stem().string();
  const std::string weights = stem + ".safetensors";
  const std::string config_path = (std::filesystem::path(options.folder) / (stem + ".yaml")).string();
  const std::string weights_path = (std::filesystem::path(options.folder) / weights).string();
  for (const std::string& path : {config_path, weights_path}) {
    require_not_input("-o", path, {options.file});
    require_absent(path, options.force);
  }
  std::vector<Shape> shapes;
  for (const std::string& text : options.input_shapes) shapes.push_back(shape_of(text));
  const ImportedNetwork network = import_keras(options.file, weights, shapes);
  create_folders(options.folder);
  std::int64_t bytes = 0;
  for (const NamedTensor& tensor : network.weights.snapshot.weights) bytes += tensor.view.bytes();
  write_file(weights_path, bytes, [&](OutputFile& file) {
    write_safetensors(file, network.weights.snapshot.weights, {{"format", "trainctl"}});
  });
  write_file(config_path, network.config);
  if (options.common.json) {
    answer(json_line(Json{{"ok", true},
                          {"config", config_path},
                          {"weights", weights_path},
                          {"layers", network.layers},
                          {"parameters", network.parameters},
                          {"notes", network.notes}}));
  } else if (!options.common.quiet) {
    std::string text = format("{}: {}, {}\n{}: their weights\n", config_path, counted(network.layers, "layer"),
                              counted(network.parameters, "parameter"), weights_path);
    for (const std::string& note : network.notes) text += note + "\n";
    answer(text);
  }
  return 0;
}

}  // namespace

Subcommand import_subcommand() {
  return {"import", "Makes a config from a network that Keras or Hugging Face's transformers saved",
          "trainctl import flowers.keras -o configs\n"
          "  trainctl import models/SmolLM2-135M -o configs",
          [](CLI::App& app) {
            auto options = std::make_shared<ImportOptions>();
            app.add_option("FILE", options->file,
                           "A .keras file, or an .h5 file of a whole model; or a folder that save_pretrained of "
                           "transformers wrote (config.json, .safetensors files, tokenizer.json)")
                ->required()
                ->type_name("");
            app.add_option("-o,--out", options->folder,
                           "The folder for the config and the weights, which are named like FILE; for a folder only "
                           "the config is written, which refers to the folder")
                ->type_name("DIR");
            app.add_option(
                   "--input-shape", options->input_shapes,
                   "The shape of samples for an input with open dimensions (None), such as 224,224,3; repeat it "
                   "for the next such input")
                ->type_name("H,W,C")
                ->allow_extra_args(false);
            app.add_flag("--force", options->force, "Replaces the files if they exist");
            add_output_options(app, options->common);
            return [options] { return run_import(*options); };
          }};
}

}  // namespace trainctl
