// trainctl resize: asks a run that trains to go on with another number of ranks.
#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "cmd/common_options.h"
#include "cmd/subcommands.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "core/base/supervisor_lock.h"
#include "io/metrics/run_lock.h"
#include "parallel/launch/hosts.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/supervisor/launch_name.h"
#include "parallel/launch/supervisor/resize.h"

namespace trainctl {
namespace {

// How long the supervisor may take to answer: it takes no request while its ranks start, stop or start again.
constexpr std::chrono::seconds time_limit(300), usual_time(10);

struct ResizeOptions {
  CommonOptions common;
  std::string run;
  int ranks = 0;
};

// Whether a process of this host, or of another host, trains in the directory, or a supervisor runs that will start its
// ranks again.
bool is_training(const std::string& run) {
  if (supervisor_of(run)) return true;
  const std::string holder = lock_holder(run);
  if (holder.empty()) return false;
  return holder_exists(holder).value_or(true) || supervisor_runs(lock_generation(run).launch).value_or(false);
}

void require_training(const std::string& run) {
  if (!exists(run)) throw Error(ErrorKind::config, format("there is no {}", run), "name the directory of a run");
  if (is_training(run)) return;
  throw Error(ErrorKind::config, format("no process trains in {}", run),
              "start the run with --ranks N: it resumes on any number of ranks");
}

// A run whose ranks no supervisor has started.
void require_supervisor(const std::string& run) {
  if (supervisor_of(run) || !lock_generation(run).launch.empty()) return;
  throw Error(
      ErrorKind::peer,
      format("{} has no supervisor: it is a run with a single process, or one that mpirun or srun has started", run),
      "stop the run (Ctrl-C or SIGTERM) and start it with --ranks N: it resumes on any number of ranks");
}

// Returns whether the supervisor takes the request; otherwise the request is withdrawn.
bool is_taken(const std::string& run) {
  const auto begin = std::chrono::steady_clock::now();
  for (bool told = false;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (!keep_request(run)) return true;
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (waited > time_limit || (waited > usual_time && !is_training(run))) return !remove_request(run);
    if (waited < usual_time || std::exchange(told, true)) continue;
    log::info(format("the ranks of {} start or stop; the supervisor takes the request when they train", run));
  }
}

int resize(const ResizeOptions& options) {
  require_training(options.run);
  require_supervisor(options.run);
  request_ranks(options.run, options.ranks);
  if (!is_taken(options.run)) {
    require_training(options.run);  // the run may have ended meanwhile
    throw Error(ErrorKind::peer,
                format("the supervisor of {} has not taken the request within {} s", options.run, time_limit.count()),
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
                ->check(CLI::Range(1, max_slots));
            return [options] { return resize(*options); };
          }};
}

}  // namespace trainctl
