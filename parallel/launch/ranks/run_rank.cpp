// Runs the work of one rank: starts the rank, connects it with the other ranks, and ends it.
#include "parallel/launch/ranks/run_rank.h"

#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <latch>
#include <system_error>
#include <thread>
#include <vector>

#include "core/backend/immediate_stream.h"
#include "core/base/failure.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "parallel/launch/agent/secret.h"
#include "parallel/launch/host/network.h"
#include "parallel/launch/hosts.h"
#include "parallel/launch/ranks/rank_flight.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/ranks/status.h"

namespace trainctl {
namespace {

void enter(FlightRecord* flight, FlightEntry entry) {
  if (flight == nullptr) return;
  entry.step = flight->step();
  flight->training().enter(entry);
}

int finish_together(const RankContext& context, bool json, const Failure& end) {
  const Situation& situation = context.situation;
  World& world = context.world;
  enter(context.flight.get(), {.activity = Activity::ended, .text = end.message});
  if (world.rank() == 0) {
    if (end.message.empty()) {
      write_status(situation.status_file, {end.exit_code});
    } else {
      report(end, json, situation);
    }
  }
  world.finish(end.exit_code);
  return end.exit_code;
}

// Ends this rank because other ranks have not reached MPI_Init in time; its launcher then ends the other ranks. Each
// rank waits a little longer than the rank before, so that only the first waiting rank reports the error.
[[noreturn]] void end_late_start(const Situation& situation, bool json, std::chrono::milliseconds deadline) {
  constexpr int max_turns = 4;
  constexpr std::chrono::milliseconds turn{2500};  // mpirun ends the other ranks 1 to 2 s after the first
  std::this_thread::sleep_for(std::min(situation.rank, max_turns) * turn);
  const Error error(
      ErrorKind::peer,
      format("rank {} of {} on {} has waited for {:g} s in MPI_Init, but some other ranks have not reached it",
             situation.rank, situation.ranks, this_host(), std::chrono::duration<double>(deadline).count()),
      "check that the expected number of trainctl processes runs on each host (the program that starts them may hang), "
      "and that all TCP ports between the hosts are open; see cluster.start_timeout");
  report({exit_code(error.kind()), error.what()}, json, situation);
  std::_Exit(exit_code(error.kind()));
}

// Returns the rank that the failure is about: the first rank that did not answer, or this rank.
FailedRank failed_rank(const std::string& message, const RankContext& context) {
  const std::vector<std::string>& hosts = context.world.hosts();
  const std::vector<int> unresponsive = unresponsive_ranks(message);
  const bool is_silent = !unresponsive.empty() && unresponsive.front() < context.world.size();
  const int rank = is_silent ? unresponsive.front() : context.world.rank();
  return {rank, hosts[static_cast<std::size_t>(rank)], context.step, is_silent};
}

// Reports this rank's error and ends all ranks.
[[noreturn]] void abort_ranks(const RankContext& context, bool json, Failure failure) {
  World& world = context.world;
  enter(context.flight.get(), {.activity = Activity::ended, .text = failure.message});
  const std::vector<std::string>& hosts = world.hosts();
  const FailedRank failed = failed_rank(failure.message, context);
  const bool several = std::any_of(hosts.begin(), hosts.end(), [&](const auto& host) { return host != hosts.front(); });
  failure.message += unresponsive_hosts(failure.message, world.rank(), hosts, has_network());
  name_rank(failure, context.situation, world.rank(), several ? hosts[static_cast<std::size_t>(world.rank())] : "");
  report(failure, json, context.situation, failed);
  world.communicator().abort(failure.exit_code);
  std::_Exit(failure.exit_code);  // gcc 12 does not see that a virtual function cannot return
}

// Runs the work and returns how it ended. An error that all ranks throw together is returned as a Failure.
Failure end_of(const RankCommand& command, const std::function<int(RankContext&)>& work, RankContext& context) {
  try {
    ImmediateStream host;
    require_same_on_all(command.values, context.world.hosts(), context.world.communicator(), host);
    require_requested_ranks(context.situation, command.requested_ranks);
    if (!command.ends_start_itself) context.end_start();
    const int code = work(context);
    finish_output();
    return {code};
  } catch (const CollectiveError&) {
    return failure_of(std::current_exception());
  }
}

}  // namespace

void RankContext::set_flight(std::unique_ptr<FlightRecord> record) {
  flight = std::move(record);
  world.communicator().attendance().set_flight(flight.get());
}

void RankContext::begin_start() { world.communicator().attendance().set_deadline(start_deadline); }

void RankContext::end_start() {
  world.communicator().true_on_all(true);
  world.communicator().attendance().set_deadline(deadline);
}

int prepare_rank(const Situation& situation, const Variables& variables) {
  require_known_launcher(situation, variables);
  // The signal arrives when the thread that started this process ends. This thread runs as long as mpirun, since the
  // supervisor disables mpirun's other threads.
  if (situation.supervised) prctl(PR_SET_PDEATHSIG, SIGKILL);
  return take_share(situation, variables);
}

void require_threads(int count) {
  std::latch all(1);
  std::vector<std::jthread> threads;
  try {
    for (int i = 1; i < count; ++i) threads.emplace_back([&all] { all.wait(); });
  } catch (const std::system_error&) {
    all.count_down();
    throw;  // failure_of() describes the error
  }
  all.count_down();
}

int run_as_rank(const Situation& situation, bool json, const RankCommand& command,
                const std::function<int(RankContext&)>& work) {
  forget_secret();  // neither MPI nor a callback's command needs the secret
  const Variables variables = Variables::of_process();
  const Cores cores = find_cores(variables);
  const int threads = prepare_rank(situation, variables);
  constexpr int other_threads = 4;  // at least: threads of MPI, the device's streams and the loader
  require_threads(threads + other_threads);
  auto flight = open_flight(variables.text(flight_variable), situation.rank, situation.ranks);
  enter(flight.get(), {.activity = Activity::starting, .text = "waiting for all ranks in MPI_Init"});
  World world(command.start_deadline, [&] { end_late_start(situation, json, command.start_deadline); });
  require_world_size(situation, world.size());
  if (world.rank() == 0 && situation.supervised) mark_ready(situation.status_file, world.processes());
  if (world.rank() != 0) {
    log::set_level(log::Level::warning);
    log::set_prefix(format("rank {}", world.rank()));
  }
  RankContext context{.world = world,
                      .threads = threads,
                      .situation = situation,
                      .cores = cores,
                      .deadline = command.deadline,
                      .start_deadline = command.start_deadline};
  enter(flight.get(), {.activity = Activity::starting, .text = "data, program and kernels"});
  context.set_flight(std::move(flight));
  Failure failure;
  try {
    const Failure end = end_of(command, work, context);
    enter(context.flight.get(), {.activity = Activity::waiting_for_ranks, .text = "the end of all ranks"});
    world.gather(command.ending);
    return finish_together(context, json, end);
  } catch (...) {
    failure = failure_of(std::current_exception());
  }
  if (world.size() == 1) return finish_together(context, json, failure);
  abort_ranks(context, json, std::move(failure));
}

}  // namespace trainctl
