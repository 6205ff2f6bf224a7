// Requests to stop: what SIGINT, SIGTERM, SIGHUP and SIGUSR1 (which a supervisor sends to its ranks) do to a process.
//
// There are three times in the life of a process: until it trains a request ends it at once, since nothing is lost by
// that; while it trains a request is noted, and training stops in order; after that there is nothing to stop any more.
#pragma once

#include <string>

namespace trainctl {

// The first thing in main. While it lives a request ends the process at once, whatever it does (a blocked read, too),
// with `exit_code` after `message` was written to `descriptor`. SIGHUP stays ignored if nohup ignores it. From its end
// on requests are ignored: an exit code that is known does not change. One may live within another, and counts then.
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

// While it lives requests only set a flag; a second SIGINT ends the process at once, as the first StopAtOnce says. From
// its end on requests are ignored. One at a time.
class StopRequest {
 public:
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  // Set once and for all by the first request. Cheap: polled in every step.
  bool pending() const;
};

// From here on requests are ignored: the answer of the process is about to be written, whole.
void ignore_requests();

}  // namespace trainctl
