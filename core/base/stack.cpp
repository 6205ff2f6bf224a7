// Sets and checks stack sizes. The kernel limits the stack of the main thread; the C library sets the stacks of other
// threads.
#include "core/base/stack.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {
namespace {

constexpr rlim_t default_stack = rlim_t{8} << 20;  // as on most Linux systems
constexpr rlim_t min_stack = rlim_t{1} << 20;      // four times the stack usage measured in a run with MPI

}  // namespace

void prepare_stack() {
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < default_stack) {
    limit.rlim_cur = std::min(limit.rlim_max, default_stack);
    setrlimit(RLIMIT_STACK, &limit);
  }
  // The C library read the limit before main() began, so the default size of new threads is raised separately.
  pthread_attr_t defaults;
  if (pthread_getattr_default_np(&defaults) != 0) return;
  std::size_t bytes = 0;
  if (pthread_attr_getstacksize(&defaults, &bytes) == 0 && bytes < default_stack / 4 &&
      pthread_attr_setstacksize(&defaults, default_stack) == 0) {
    pthread_setattr_default_np(&defaults);
  }
  pthread_attr_destroy(&defaults);
}

void require_stack() {
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= min_stack) return;
  throw Error(
      ErrorKind::resource,
      format("the stack is limited to {}, and {} are needed", byte_text(static_cast<std::int64_t>(limit.rlim_cur)),
             byte_text(static_cast<std::int64_t>(min_stack))),
      format("raise the limit (ulimit -s {})", default_stack / 1024));
}

}  // namespace trainctl
