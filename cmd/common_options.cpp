// Declares the common options.
#include "cmd/common_options.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <system_error>

#include "cmd/number_checks.h"
#include "cmd/one_of.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "parallel/launch/plan.h"

namespace trainctl {

void add_config_options(CLI::App& app, CommonOptions& options) {
  app.add_option("CONFIG", options.config, "The config, a YAML file")->required()->type_name("");
  app.add_option("--set", options.sets, "Replaces a value of the config: train.epochs=5 (repeatable)")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
}

void add_output_options(CLI::App& app, CommonOptions& options) {
  app.add_flag("--json", options.json, "Prints one JSON document to stdout, and nothing else");
  const auto on_flag = [](log::Level level) { return [level](const std::string&) { log::set_level(level); }; };
  app.add_flag("--quiet", options.quiet, "Shows only warnings and errors")->each(on_flag(log::Level::warning));
  app.add_flag("-v,--verbose", options.verbose, "Shows more detail")->each(on_flag(log::Level::debug));
}

void add_launch_options(CLI::App& app, LaunchFlags& flags) {
  app.add_option("--ranks", flags.ranks, "Number of ranks, or auto; overrides cluster.ranks")->type_name("N");
  app.add_option("--hosts", flags.hosts, "Hosts, each with its maximum number of ranks: node1:8,node2:8")
      ->type_name("LIST");
  app.add_flag("--sync", flags.sync, "Copies trainctl to hosts where it is missing or differs");
  app.add_option("--device", flags.device, "The device that ranks compute on; overrides cluster.device")
      ->check(one_of({"auto", "cpu", "cuda"}));
}

void add_phase_option(CLI::App& app, int& phase) {
  app.add_option("--phase", phase, "The phase of the run, counted from 1; default: the last one")
      ->check(whole_number_from(1));
}

void require_absent(const std::string& path, bool force) {
  if (force || !exists(path, {ErrorKind::config})) return;
  throw Error(ErrorKind::config, SourceLocation{path}, "this file exists",
              "choose another path (-o), or replace it (--force)");
}

void require_not_input(const std::string& option, const std::string& output, const std::vector<std::string>& inputs) {
  if (output.empty()) return;
  for (const std::string& input : inputs) {
    std::error_code none;  // a path that does not exist is equivalent to no other one
    if (!std::filesystem::equivalent(output, input, none)) continue;
    throw Error(
        ErrorKind::config,
        format("{} {} would overwrite {}an input of this command", option, output, output == input ? "" : input + ", "),
        format("give {} another path", option));
  }
}

std::vector<std::string> all_files_in(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator next(folder, error), end; !error && next != end; next.increment(error)) {
    if (std::error_code ignored; next->is_regular_file(ignored)) files.push_back(next->path().string());
  }
  return files;
}

std::vector<std::string> files_of_run(const std::string& run) {
  std::vector<std::string> files = all_files_in(run + "/checkpoints");
  files.push_back(run + "/config.yaml");
  files.push_back(run + "/metrics.jsonl");
  return files;
}

}  // namespace trainctl
