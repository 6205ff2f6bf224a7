// trainctl inspect: what a checkpoint holds, and whether it is whole.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "cmd/run_spec.h"
#include "cmd/subcommands.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "io/checkpoint/inspection.h"
#include "io/checkpoint/load.h"
#include "io/metrics/find_run.h"

namespace trainctl {
namespace {

int inspect(const std::string& path, const CommonOptions& options) {
  std::string where = path;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) {
    const RunSpec spec = load_run_spec(path);
    where = newest_run(spec.name, Value<RunSpec>::write(spec), path).path;
  }
  const std::vector<Inspection> found = inspect_all(where);
  const bool ok = std::all_of(found.begin(), found.end(), [](const auto& one) { return one.problem.empty(); });
  if (options.json) {
    Json json{{"ok", ok}, {"checkpoints", Json::array()}};
    for (const Inspection& one : found) json["checkpoints"].push_back(to_json(one));
    std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  } else {
    if (found[0].manifest && !options.quiet) std::cout << describe(found[0]);
    for (const Inspection& one : found) {
      std::cout << (one.problem.empty() ? one.path + ": whole, every hash verified" : one.problem) << '\n';
    }
  }
  return ok ? 0 : exit_code(ErrorKind::answer_is_no);
}

}  // namespace

Subcommand inspect_subcommand() {
  return {"inspect", "Shows what a checkpoint holds, and verifies it",
          "trainctl inspect runs/mnist\n  trainctl inspect runs/mnist/checkpoints/best --json", [](CLI::App& app) {
            auto options = std::make_shared<CommonOptions>();
            auto path = std::make_shared<std::string>();
            app.add_option("path", *path,
                           "A checkpoint; a run directory: its newest in detail, all verified; or a config: its newest "
                           "run's")
                ->required()
                ->type_name("RUN_DIR|CHECKPOINT|CONFIG");
            add_output_options(app, *options);
            return [options, path] { return inspect(*path, *options); };
          }};
}

}  // namespace trainctl
