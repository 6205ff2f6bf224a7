// Requests to stop, in this process and in a copy of it.
#include "parallel/launch/stop.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/catch.h"

namespace trainctl {
namespace {

TEST_CASE("each of the signals asks once, and afterwards they are what they were") {
  for (int signal : {SIGUSR1, SIGTERM, SIGHUP, SIGINT}) {
    struct sigaction before {};
    struct sigaction after {};
    sigaction(signal, nullptr, &before);
    {
      const StopRequest stop;
      CHECK_FALSE(stop.pending());
      raise(signal);
      CHECK(stop.pending());
    }
    sigaction(signal, nullptr, &after);
    CHECK(before.sa_handler == after.sa_handler);
  }
}

TEST_CASE("a second SIGINT ends the process at once, other repetitions do not") {
  for (const bool interrupt : {true, false}) {
    const pid_t child = fork();
    if (child == 0) {
      const StopRequest stop;
      raise(SIGTERM);
      raise(SIGINT);
      raise(interrupt ? SIGINT : SIGTERM);
      _exit(7);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == (interrupt ? 130 : 7));
  }
}

TEST_CASE("nohup's SIGHUP stays ignored") {
  struct sigaction before {};
  sigaction(SIGHUP, nullptr, &before);
  signal(SIGHUP, SIG_IGN);
  {
    const StopRequest stop;
    raise(SIGHUP);
    CHECK_FALSE(stop.pending());
  }
  sigaction(SIGHUP, &before, nullptr);
}

}  // namespace
}  // namespace trainctl
