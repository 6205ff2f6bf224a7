// Handles requests to stop: SIGINT, SIGTERM, SIGHUP and SIGUSR1 (which a supervisor sends to its ranks).
//
// A process has three phases. Before it trains, a request ends it at once, since nothing is lost. While it trains, a
// request only sets a flag, and training stops in order. After that, requests are ignored.
#pragma once

#include <string>

namespace trainctl {

// Created first in main. While it exists, a request ends the process at once, even in a blocking read, with `exit_code`
// after writing `message` to `descriptor`. SIGHUP stays ignored if nohup ignores it. After its destruction requests are
// ignored, so that a known exit code does not change. Objects may be nested; the newest one applies.
class StopAtOnce {
 public:
  struct End {
    int descriptor;
    std::string message;
    int exit_code;
  };

  StopAtOnce(int descriptor, std::string message, int exit_code = 130);
  ~StopAtOnce();
  StopAtOnce(const StopAtOnce&) = delete;
  StopAtOnce& operator=(const StopAtOnce&) = delete;

 private:
  End end_;
};

// While it exists, requests only set a flag; a second SIGINT ends the process at once, like the first StopAtOnce. After
// its destruction requests are ignored. There may be only one at a time.
class StopRequest {
 public:
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  // Whether there was a request; never reset. Cheap enough to be polled in every step.
  bool pending() const;
};

// Ignores requests from now on, so that the answer of the process can be written completely.
void ignore_requests();

}  // namespace trainctl
