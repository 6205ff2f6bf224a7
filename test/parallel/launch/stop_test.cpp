// Tests requests to stop, in forked copies of this process.
#include "parallel/launch/ranks/stop.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "test/catch.h"

namespace trainctl::stop_test {
namespace {

// Runs `work` in a copy of this process; returns its exit code, or -signal.
int of_copy(void (*work)()) {
  const pid_t child = fork();
  if (child == 0) {
    for (int number : {SIGUSR1, SIGTERM, SIGHUP, SIGINT}) signal(number, SIG_DFL);
    work();
    _exit(7);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST_CASE("each of the signals requests a stop while a StopRequest exists, and has no effect afterwards") {
  CHECK(of_copy([] {
          for (int signal : {SIGUSR1, SIGTERM, SIGHUP, SIGINT}) {
            {
              const StopRequest stop;
              if (stop.pending()) _exit(1);
              raise(signal);
              if (!stop.pending()) _exit(2);
            }
            raise(signal);
            ::signal(SIGHUP, SIG_DFL);  // otherwise it would stay ignored
          }
        }) == 7);
}

TEST_CASE("a second SIGINT ends the process immediately, other repeated signals do not") {
  CHECK(of_copy([] {
          const StopRequest stop;
          raise(SIGTERM);
          raise(SIGINT);
          raise(SIGINT);
        }) == 130);
  CHECK(of_copy([] {
          const StopRequest stop;
          raise(SIGTERM);
          raise(SIGINT);
          raise(SIGTERM);
        }) == 7);
}

TEST_CASE("outside training a request ends the process immediately with a message, even during a wait") {
  static int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  for (void (*work)() : {+[] { raise(SIGTERM); },
                         +[] {
                           alarm(20);  // ends the wait below if no request does
                           if (fork() == 0) {
                             usleep(50000);
                             kill(getppid(), SIGUSR1);
                             _exit(0);
                           }
                           char never = 0;
                           static int silent[2];
                           if (pipe(silent) != 0 || read(silent[0], &never, 1) < 0) _exit(1);
                         }}) {
    static void (*chosen)();
    chosen = work;
    CHECK(of_copy([] {
            const StopAtOnce stop(pipe_ends[1], "farewell");
            chosen();
          }) == 130);
    char text[9] = {};
    CHECK(read(pipe_ends[0], text, 8) == 8);
    CHECK(std::string(text) == "farewell");
  }
  CHECK(of_copy([] {
          const StopAtOnce outside(STDERR_FILENO, "");
          const StopAtOnce unstarted(STDERR_FILENO, "", 75);  // the newest object sets the exit code
          raise(SIGTERM);
        }) == 75);
  CHECK(of_copy([] {
          const StopAtOnce outside(STDERR_FILENO, "");
          const StopAtOnce unstarted(STDERR_FILENO, "", 75);
          const StopRequest stop;
          raise(SIGINT);
          raise(SIGINT);
        }) == 130);
  CHECK(of_copy([] {
          sigset_t requests;  // blocked, as by a launcher that shields its ranks from signals
          sigemptyset(&requests);
          sigaddset(&requests, SIGTERM);
          sigprocmask(SIG_BLOCK, &requests, nullptr);
          const StopAtOnce stop(STDERR_FILENO, "");
          raise(SIGTERM);
        }) == 130);
  CHECK(of_copy([] {
          const StopAtOnce stop(pipe_ends[1], "");
          ignore_requests();
          raise(SIGINT);
        }) == 7);
}

TEST_CASE("nohup's SIGHUP stays ignored") {
  CHECK(of_copy([] {
          signal(SIGHUP, SIG_IGN);
          const StopAtOnce at_once(STDERR_FILENO, "");
          raise(SIGHUP);
          const StopRequest stop;
          raise(SIGHUP);
          if (stop.pending()) _exit(1);
        }) == 7);
}

}  // namespace
}  // namespace trainctl::stop_test
