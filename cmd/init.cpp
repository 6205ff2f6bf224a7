// trainctl init: looks at the data at a path, and writes a config that trains on it.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cmd/common_options.h"
#include "cmd/one_of.h"
#include "cmd/subcommands.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/shell_words.h"
#include "core/base/terminal_text.h"
#include "core/spec/schema.h"
#include "io/checkpoint/atomic_file.h"
#include "io/yaml/yaml.h"
#include "parallel/launch/ranks/report.h"
#include "run/draft/draft.h"
#include "run/draft/presets.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

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

std::string schema_text() { return json_schema(section_of<RunSpec>(), parse_value); }

struct NewFile {
  std::string path, text;
};

// Writes all files or none of them: removes those that are new if another one cannot be written.
void write_all(const std::string& folder, const std::vector<NewFile>& files) {
  std::vector<std::string> made;
  try {
    create_folders(folder);
    for (const NewFile& file : files) {
      const bool is_new = !exists(file.path);
      write_file(file.path, file.text);
      if (is_new) made.push_back(file.path);
    }
  } catch (const Error& error) {
    std::error_code ignored;
    for (const std::string& path : made) fs::remove(path, ignored);
    std::string_view message = error.what();
    const std::string place = to_string(error.location()) + ": ";
    if (message.starts_with(place)) message.remove_prefix(place.size());
    throw Error(error.kind(), error.location(), message, "for init, choose the folder with --out DIR");
  }
}

int run_init(const InitOptions& options) {
  if (options.list) {
    answer(options.common.json ? json_line(presets_json()) : presets_text());
    return 0;
  }
  if (options.path.empty()) throw Error(ErrorKind::config, "init requires the path of the data, or --list");
  if (!exists(options.path)) throw Error(ErrorKind::data, options.path + " does not exist");
  const DraftRequest request{options.path, options.folder, config_name_for(options.path), options.target,
                             options.targets};
  const std::vector<Draft> drafts = drafts_for(request);
  for (const Draft& one : drafts) {
    require_not_input("-o", options.folder + "/" + one.file, {options.path});
    require_absent(options.folder + "/" + one.file, options.force);
    load_run_spec(options.folder + "/" + one.file, {}, one.text);  // a config that does not load is not written
  }
  Json files = Json::array();
  std::vector<NewFile> written;
  std::string text;
  for (const Draft& one : drafts) {
    const std::string path = (fs::path(options.folder) / one.file).lexically_normal().string();
    written.push_back({path, one.text});
    files.push_back({{"config", path}, {"summary", one.summary}, {"notes", one.notes}});
    text += format("{}: {}\n", path, one.summary);
    for (const std::string& note : one.notes) text += format("  note: {}\n", terminal_word(note));
  }
  const std::string schema = (fs::path(options.folder) / "trainctl.schema.json").lexically_normal().string();
  written.push_back({schema, schema_text()});
  write_all(options.folder, written);
  text += format("{}: the keys of configs, for editors\n", schema);
  const std::string first = files[0]["config"];
  text += format("next: trainctl check {0}, then trainctl run {0}\n", shell_word(first));
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
                   "A folder of images, WAV files or NIfTI volumes in class folders, a folder of images and one of "
                   "their masks or of the images that are their targets, a .csv file, a folder or file of arrays, or a "
                   "folder or file of text")
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
                   "For arrays, tables and pairs of images: the kind of targets; default: init finds out")
                ->check(one_of({"classes", "values"}))
                ->type_name("classes|values");
            app.add_flag("--force", options->force, "Replaces the files if they exist");
            app.add_flag("--list", options->list, "Only lists the preset networks, with their parameters and FLOPs");
            add_output_options(app, options->common);
            return [options] { return run_init(*options); };
          }};
}

}  // namespace trainctl
