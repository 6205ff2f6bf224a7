// Tests the requirements of a rank before it begins.
#include "parallel/launch/ranks/run_rank.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <system_error>

#include "core/base/error.h"
#include "core/base/failure.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/situation.h"
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

TEST_CASE("errors of files name the rank only where there are several hosts or several messages") {
  const auto named = [](int exit_code, bool supervised, const std::string& host, const std::string& file = "c.yaml") {
    Situation situation;
    situation.supervised = supervised;
    Failure failure{exit_code, "message", {{{file}, "message", {}, {}}}};
    name_rank(failure, situation, 3, host);
    CHECK(failure.errors[0].message == failure.message);
    return failure.message;
  };
  for (const ErrorKind files : {ErrorKind::config, ErrorKind::data}) {
    CHECK(named(exit_code(files), true, "") == "message");
    CHECK(named(exit_code(files), true, "", "") == "message (rank 3)");  // an error of this rank's GPU
    CHECK(named(exit_code(files), true, "h2") == "message (rank 3 on h2)");
    CHECK(named(exit_code(files), false, "") == "message (rank 3)");
  }
  for (const ErrorKind own : {ErrorKind::resource, ErrorKind::peer}) {
    CHECK(named(exit_code(own), true, "") == "message (rank 3)");
    CHECK(named(exit_code(own), true, "h2") == "message (rank 3 on h2)");
  }
}

}  // namespace
}  // namespace trainctl::rank_test
