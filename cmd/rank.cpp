// The frame around what one rank does.
#include "cmd/rank.h"

#include <cstdlib>

#include "core/backend/immediate_stream.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "parallel/launch/rank.h"
#include "parallel/launch/status.h"

namespace trainctl {
namespace {

// A supervised rank leaves its message to the supervisor, which prints it once; others print it themselves.
void report(const Situation& situation, const RankStatus& status) {
  const bool alone = leave_status(situation.status_file, status) == StatusLeft::unreachable;
  if (alone && !status.message.empty()) log::error(status.message);
}

int leave_in_order(const Situation& situation, World& world, const RankStatus& status) {
  if (world.rank() == 0) report(situation, status);
  world.finish();
  return status.exit_code;
}

// Takes the other ranks down, after this rank's own error.
[[noreturn]] void leave_alone(const Situation& situation, World& world, RankStatus failure) {
  const std::string& host = world.hosts()[static_cast<std::size_t>(world.rank())];
  failure.message += format(" (rank {} on {})", world.rank(), host);
  report(situation, failure);
  world.communicator().abort(failure.exit_code);
  std::_Exit(failure.exit_code);  // gcc 12 does not see that a virtual function cannot return
}

}  // namespace

int run_as_rank(const Situation& situation, const RankCommand& command, const std::function<int(RankContext&)>& work) {
  const Variables variables = Variables::of_process();
  const Cores cores = find_cores(variables);
  const int threads = prepare_rank(situation, variables);
  StopRequest stop;
  World world;
  require_world_size(situation, world.size());
  if (world.rank() == 0 && situation.supervised) say_ready(situation.status_file);
  if (world.rank() != 0) {
    log::set_level(log::Level::warning);
    log::set_prefix(format("rank {}", world.rank()));
  }
  RankContext context{world, stop, threads, situation, cores};
  RankStatus failure;
  try {
    ImmediateStream host;
    require_same_on_all(command.facts, world.hosts(), world.communicator(), host);
    require_stated_ranks(situation, command.stated_ranks);
    const int code = work(context);
    return leave_in_order(situation, world, {code, ""});
  } catch (const CollectiveError& error) {
    return leave_in_order(situation, world, {exit_code(error.kind()), error.what()});
  } catch (const Error& error) {
    failure = {exit_code(error.kind()), error.what()};
  } catch (const std::bad_alloc&) {
    failure = {exit_code(ErrorKind::resource), "memory ran out on the host; use a smaller batch or fewer ranks on it"};
  } catch (const std::exception& error) {
    failure = {exit_code(ErrorKind::internal), format("internal error: {}", error.what())};
  }
  if (world.size() == 1) return leave_in_order(situation, world, failure);
  leave_alone(situation, world, std::move(failure));
}

}  // namespace trainctl
