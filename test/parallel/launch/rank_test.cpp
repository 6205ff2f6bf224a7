// Tests the requirements of a rank before it begins.
#include "parallel/launch/ranks/run_rank.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <system_error>

#include "core/base/failure.h"
#include "test/catch.h"

namespace trainctl::rank_test {
namespace {

TEST_CASE("threads that cannot be started are an error with a remedy") {
  require_threads(1);
  require_threads(8);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none{1, 1};
    if (setrlimit(RLIMIT_NPROC, &none) != 0 || (geteuid() == 0 && setuid(65534) != 0)) _exit(77);
    try {
      require_threads(8);
    } catch (...) {
      const Failure failure = failure_of(std::current_exception());
      _exit(failure.message.starts_with("no more threads can be started") ? failure.exit_code : 1);
    }
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK((WEXITSTATUS(status) == 6 || WEXITSTATUS(status) == 77));
}

}  // namespace
}  // namespace trainctl::rank_test
