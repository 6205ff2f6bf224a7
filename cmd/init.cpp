// trainctl init: looks at the data at a path, and writes a config that trains on it.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>

#include "cmd/common_options.h"
#include "cmd/subcommands.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/table.h"
#include "core/layers/model/model.h"
#include "core/spec/schema.h"
#include "io/checkpoint/atomic_file.h"
#include "io/yaml/presets.h"
#include "io/yaml/yaml.h"
#include "parallel/launch/ranks/report.h"
#include "run/draft/draft.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

struct PresetSize {
  std::string name;
  Shape sample;
  std::int64_t parameters = 0;
  double flops = 0;  // FLOPs of a sample's forward pass
};

PresetSize size_of(const std::string& name) {
  Reader reader;
  const Node preset = load_preset(scalar_node(name), reader);
  reader.throw_if_failed();
  const Node* shape = preset.find("shape");
  if (shape == nullptr)
    throw Error(ErrorKind::config, preset.location, "a preset must have the `shape` of its samples");
  const std::string text = format(
      "data: {{dataset: synthetic, samples: 1, shape: {}, classes: 2}}\n"
      "model: {{preset: {}}}\n"
      "train: {{batch_size: 1, epochs: 1, loss: sparse_categorical_crossentropy, optimizer: sgd}}\n",
      flow_text(*shape), name);
  const RunSpec spec = load_run_spec(name, {}, text);
  PresetSize size{name, Shape(*spec.data.shape->find("")), 0, 0};
  ModelInput input{"", size.sample, {}};
  if (token_count(spec.model, "") > 0) input.format.dtype = DType::int32;
  for (const LayerLine& line : build_model(spec.model, {.inputs = {input}}, reader).layers) {
    size.parameters += line.parameters;
    size.flops += line.flops;
  }
  reader.throw_if_failed();
  return size;
}

std::vector<PresetSize> sizes_of_all() {
  std::vector<PresetSize> sizes;
  for (const std::string& name : preset_names()) sizes.push_back(size_of(name));
  return sizes;
}

// The presets as text, a line for each, or as [{name, shape, parameters, flops_per_sample}], with the FLOPs of a
// forward pass.
std::string presets_text() {
  constexpr auto right = TextTable::Align::right;
  TextTable table({{"preset"}, {"sample"}, {"parameters", right}, {"forward pass of a sample", right}});
  for (const PresetSize& size : sizes_of_all()) {
    table.add({size.name, to_string(size.sample), grouped(size.parameters), flops_text(size.flops)});
  }
  return table.text() + "a config uses one by `model: {preset: NAME, with: {classes: 10}}`\n";
}

Json presets_json() {
  Json json = Json::array();
  for (const PresetSize& size : sizes_of_all()) {
    json.push_back({{"name", size.name},
                    {"shape", size.sample.sizes()},
                    {"parameters", size.parameters},
                    {"flops_per_sample", size.flops}});
  }
  return json;
}

namespace fs = std::filesystem;

struct InitOptions {
  CommonOptions common;
  std::string path;
  std::string folder = ".";
  std::string target;
  TargetsAre targets = TargetsAre::found_out;
  bool force = false;
  bool list = false;
};

// The last component of a path, with '-' for each character that the name of a run may not have.
std::string name_of(const std::string& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  const fs::path last = whole.has_filename() ? whole : whole.parent_path();
  std::string name = is_folder(path) ? last.filename().string() : last.stem().string();
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '-') c = '-';
  }
  return name.empty() || name == "-" ? "config" : name.substr(0, 100);
}

std::vector<Draft> draft(const DraftRequest& request) {
  if (!is_folder(request.path)) {
    const std::string ending = fs::path(request.path).extension().string();
    if (ending == ".csv" || ending == ".tsv") return draft_for_table(request);
    if (ending == ".npz") return draft_for_arrays(request);
    if (is_text_file(request.path)) return draft_for_text(request);
  } else {
    if (holds_table(request.path)) return draft_for_table(request);
    if (holds_arrays(request.path)) return draft_for_arrays(request);
    if (holds_images(request.path)) return draft_for_images(request);
    if (holds_sounds(request.path)) return draft_for_sounds(request);
    if (holds_volumes(request.path)) return draft_for_volumes(request);
    if (holds_text(request.path)) return draft_for_text(request);
  }
  throw Error(
      ErrorKind::data, request.path + ": init does not recognize this data",
      "it recognizes a folder with a folder of images, WAV files or NIfTI volumes for each class (or train/ and "
      "validation/ with such folders), a .csv file, an .npz file with x and y, a folder with x.npy and y.npy, MNIST's "
      "IDX files, and text: "
      "a file or folder of .txt, .md or .jsonl files, or a folder of .txt files for each class; "
      "`trainctl schema --markdown` lists all data sets");
}

std::string schema_text() { return json_schema(section_of<RunSpec>(), parse_value); }

int run_init(const InitOptions& options) {
  if (options.list) {
    answer(options.common.json ? json_line(presets_json()) : presets_text());
    return 0;
  }
  if (options.path.empty()) throw Error(ErrorKind::config, "init requires the path of the data, or --list");
  if (!exists(options.path)) throw Error(ErrorKind::data, options.path + " does not exist");
  const DraftRequest request{options.path, options.folder, name_of(options.path), options.target, options.targets};
  const std::vector<Draft> drafts = draft(request);
  for (const Draft& one : drafts) {
    require_absent(options.folder + "/" + one.file, options.force);
    load_run_spec(options.folder + "/" + one.file, {}, one.text);  // a config that does not load is not written
  }
  create_folders(options.folder);
  Json files = Json::array();
  std::string text;
  for (const Draft& one : drafts) {
    const std::string path = (fs::path(options.folder) / one.file).lexically_normal().string();
    write_file(path, one.text);
    files.push_back({{"config", path}, {"summary", one.summary}});
    text += format("{}: {}\n", path, one.summary);
  }
  const std::string schema = (fs::path(options.folder) / "trainctl.schema.json").lexically_normal().string();
  write_file(schema, schema_text());
  text += format("{}: the keys of configs, for editors\n", schema);
  const std::string first = files[0]["config"];
  text += format("next: trainctl check {}, then trainctl run {}\n", first, first);
  if (options.common.json) {
    answer(json_line(Json{{"ok", true}, {"configs", files}, {"schema", schema}}));
  } else if (!options.common.quiet) {
    answer(text);
  }
  return 0;
}

}  // namespace

Subcommand init_subcommand() {
  return {"init", "Looks at the data at a path, and writes a config that trains on it",
          "trainctl init flowers\n  trainctl init --list", [](CLI::App& app) {
            auto options = std::make_shared<InitOptions>();
            app.add_option(
                   "PATH", options->path,
                   "A folder of images, WAV files or NIfTI volumes in class folders, a .csv file, a folder or file of "
                   "arrays, or a folder or file of text")
                ->type_name("");
            app.add_option("-o,--out", options->folder, "The folder for the config")->type_name("DIR");
            app.add_option("--target", options->target,
                           "For tables: the column to predict; for .jsonl files: the key of the class")
                ->type_name("COLUMN");
            app.add_option_function<std::string>(
                   "--targets",
                   [options](const std::string& kind) {
                     options->targets = kind == "values" ? TargetsAre::values : TargetsAre::classes;
                   },
                   "For arrays and tables: the kind of targets; default: init finds out")
                ->check(CLI::IsMember({"classes", "values"}))
                ->type_name("classes|values");
            app.add_flag("--force", options->force, "Replaces the files if they exist");
            app.add_flag("--list", options->list, "Only lists the preset networks, with their parameters and FLOPs");
            add_output_options(app, options->common);
            return [options] { return run_init(*options); };
          }};
}

}  // namespace trainctl
