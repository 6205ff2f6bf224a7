// Makes the failure of one rank the failure of all ranks.
#include "parallel/comm/joint_attempt.h"

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/failure.h"
#include "core/base/format.h"
#include "parallel/comm/text.h"

namespace trainctl {
void JointAttempt::run(const std::function<void()>& work) {
  if (failure_) return;
  try {
    work();
  } catch (const Error&) {
    failure_ = std::current_exception();
  }
}

void JointAttempt::throw_if_any_failed() {
  std::int32_t lowest = failure_ ? world_.rank() : world_.size();
  world_.all_reduce({&lowest, DType::int32, 1}, Reduction::minimum, stream_);
  stream_.synchronize();
  if (lowest == world_.size()) return;

  std::int32_t kind = 0;
  std::string file, message;
  if (lowest == world_.rank()) {
    try {
      std::rethrow_exception(failure_);
    } catch (const Error& error) {
      kind = static_cast<std::int32_t>(error.kind());
      file = error.location().file;
      message = without_location(error);
    }
  }
  world_.broadcast({&kind, DType::int32, 1}, lowest, stream_);
  stream_.synchronize();
  file = broadcast_text(file, lowest, world_, stream_);
  message = broadcast_text(message, lowest, world_, stream_);
  const std::vector<int> in_world = world_.world_ranks();
  const int failed = in_world.empty() ? lowest : in_world[static_cast<std::size_t>(lowest)];
  if (failed > 0) message += format(" ({})", world_.attendance().name({failed}));
  throw CollectiveError(static_cast<ErrorKind>(kind), SourceLocation{file}, message);
}

}  // namespace trainctl
