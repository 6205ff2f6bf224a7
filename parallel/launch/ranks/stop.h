// Handles requests to stop: SIGINT, SIGTERM, SIGHUP and SIGUSR1 (which a supervisor sends to its ranks). A process has
// three phases. Before training, a request ends the process immediately, since no work is lost. During training, a
// request only sets a flag, and training stops in order. After training, requests are ignored.
#pragma once

#include <string>

namespace trainctl {

// Created first in main. While it exists, a request writes `message` to `descriptor` and ends the process immediately
// with `exit_code`, even in a blocking read. SIGHUP stays ignored if nohup ignores it. After its destruction requests
// are ignored, so that a known exit code does not change. Objects may be nested; the newest one applies.
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

// While it exists, requests only set a flag; a second SIGINT ends the process immediately, as the first StopAtOnce
// would. After its destruction requests are ignored. Only one object may exist at a time.
class StopRequest {
 public:
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  // Returns whether there was a request; never reset. Cheap enough to be polled in every step.
  bool pending() const;
};

// Ignores requests from now on, so that the answer of the process can be written completely.
void ignore_requests();

}  // namespace trainctl
