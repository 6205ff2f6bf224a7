// trainctl import: a network that Keras saved, as a config and a file of weights.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "cmd/subcommands.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "io/checkpoint/safetensors.h"
#include "io/keras/import.h"
#include "parallel/launch/report.h"

namespace trainctl {
namespace {

struct ImportOptions {
  CommonOptions common;
  std::string file;
  std::string folder = ".";
  bool force = false;
};

int run_import(const ImportOptions& options) {
  const std::string stem = std::filesystem::path(options.file).stem().string();
  const std::string weights = stem + ".safetensors";
  const std::string config_path = (std::filesystem::path(options.folder) / (stem + ".yaml")).string();
  const std::string weights_path = (std::filesystem::path(options.folder) / weights).string();
  for (const std::string& path : {config_path, weights_path}) {
    if (options.force || !exists(path, {ErrorKind::config})) continue;
    throw Error(ErrorKind::config, Place{path}, "this file exists",
                "choose another folder (-o), or replace it (--force)");
  }
  const ImportedNetwork network = import_keras(options.file, weights);
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
                          {"parameters", network.parameters}}));
  } else if (!options.common.quiet) {
    answer(format("{}: {} layers, {} parameters\n{}: their weights\n", config_path, network.layers, network.parameters,
                  weights_path));
  }
  return 0;
}

}  // namespace

Subcommand import_subcommand() {
  return {"import", "Makes a config and a file of weights from a network that Keras saved",
          "trainctl import flowers.keras -o configs", [](CLI::App& app) {
            auto options = std::make_shared<ImportOptions>();
            app.add_option("FILE", options->file, "A .keras file, or an .h5 file of a whole model")
                ->required()
                ->type_name("");
            app.add_option("-o,--out", options->folder, "The folder for FILE's name with .yaml and .safetensors")
                ->type_name("DIR");
            app.add_flag("--force", options->force, "Replaces files of these names");
            add_output_options(app, options->common);
            return [options] { return run_import(*options); };
          }};
}

}  // namespace trainctl
