// trainctl resize: asks a run that trains to go on with another number of ranks.
#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <thread>

#include "cmd/common_options.h"
#include "cmd/subcommands.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "io/metrics/run_lock.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/supervisor/resize.h"

namespace trainctl {
namespace {

struct ResizeOptions {
  CommonOptions common;
  std::string run;
  int ranks = 0;
};

// Throws Error{config} unless a process of this host, or of another host, trains in the directory.
void require_training(const std::string& run) {
  if (!exists(run)) throw Error(ErrorKind::config, format("there is no {}", run), "name the directory of a run");
  const std::string holder = lock_holder(run);
  if (!holder.empty() && holder_exists(holder).value_or(true)) return;
  throw Error(ErrorKind::config, format("no process trains in {}", run),
              "start the run with --ranks N: it resumes on any number of ranks");
}

// Waits until the supervisor has taken the request; otherwise withdraws it.
int resize(const ResizeOptions& options) {
  constexpr std::chrono::seconds limit(10);
  require_training(options.run);
  request_ranks(options.run, options.ranks);
  const auto end = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (requested_ranks_of(options.run)) continue;
    if (options.common.json) answer(json_line(Json{{"ok", true}, {"ranks", options.ranks}}));
    log::info(format("the supervisor of {} has the request; its log says what follows", options.run));
    return 0;
  }
  remove_request(options.run);
  throw Error(
      ErrorKind::peer,
      format("no supervisor of {} has answered within {} s: a run with a single process, and one that mpirun or "
             "srun has started, cannot be resized while it trains",
             options.run, limit.count()),
      "stop the run (Ctrl-C or SIGTERM), and start it with --ranks N: it resumes on any number of ranks");
}

}  // namespace

Subcommand resize_subcommand() {
  return {"resize", "Lets a run that trains go on with another number of ranks", "trainctl resize runs/mnist --ranks 4",
          [](CLI::App& app) {
            auto options = std::make_shared<ResizeOptions>();
            add_output_options(app, options->common);
            app.add_option("RUN_DIR", options->run, "The run's directory")->required();
            app.add_option("--ranks", options->ranks, "The new number of ranks")
                ->required()
                ->type_name("N")
                ->check(CLI::PositiveNumber);
            return [options] { return resize(*options); };
          }};
}

}  // namespace trainctl
