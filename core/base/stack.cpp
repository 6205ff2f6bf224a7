// Limits of stacks: of the main thread by the kernel, of others by the C library.
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

constexpr rlim_t usual_stack = rlim_t{8} << 20;
constexpr rlim_t least_stack = rlim_t{1} << 20;  // a run with MPI was seen to take a quarter of it

}  // namespace

void prepare_stack() {
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < usual_stack) {
    limit.rlim_cur = std::min(limit.rlim_max, usual_stack);
    setrlimit(RLIMIT_STACK, &limit);
  }
  // The C library has read the limit before main began.
  pthread_attr_t defaults;
  if (pthread_getattr_default_np(&defaults) != 0) return;
  std::size_t bytes = 0;
  if (pthread_attr_getstacksize(&defaults, &bytes) == 0 && bytes < usual_stack / 4 &&
      pthread_attr_setstacksize(&defaults, usual_stack) == 0) {
    pthread_setattr_default_np(&defaults);
  }
  pthread_attr_destroy(&defaults);
}

void require_stack() {
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= least_stack) return;
  throw Error(
      ErrorKind::resource,
      format("the stack may grow to {}, and {} are needed", byte_text(static_cast<std::int64_t>(limit.rlim_cur)),
             byte_text(static_cast<std::int64_t>(least_stack))),
      format("raise the limit (ulimit -s {})", usual_stack / 1024));
}

}  // namespace trainctl
