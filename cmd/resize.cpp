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

constexpr std::chrono::seconds time_limit(10);  // for the supervisor's answer

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

// Returns whether the supervisor takes the request within some seconds; otherwise the request is withdrawn.
bool is_taken(const std::string& run) {
  const auto end = std::chrono::steady_clock::now() + time_limit;
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (!requested_ranks_of(run)) return true;
  }
  return !remove_request(run);
}

int resize(const ResizeOptions& options) {
  require_training(options.run);
  request_ranks(options.run, options.ranks);
  if (!is_taken(options.run)) {
    require_training(options.run);  // the run may have ended meanwhile
    throw Error(ErrorKind::peer,
                format("the supervisor of {} has not taken the request within {} s: its ranks may be starting or "
                       "stopping, or it is a run with a single process, or one that mpirun or srun has started",
                       options.run, time_limit.count()),
                "try again, or stop the run (Ctrl-C or SIGTERM) and start it with --ranks N: it resumes on any number "
                "of ranks");
  }
  if (options.common.json) answer(json_line(Json{{"ok", true}, {"ranks", options.ranks}}));
  log::info(format("the supervisor of {} has the request; its log says what follows", options.run));
  return 0;
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
