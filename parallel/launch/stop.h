// StopRequest: whether this process was asked to stop after the current step.
#pragma once

namespace trainctl {

// While it lives, SIGUSR1 (what the supervisor sends), SIGTERM, SIGHUP and the first SIGINT only set a flag; the second
// SIGINT ends the process at once with exit code 130. SIGHUP stays ignored where nohup ignores it. One at a time, made
// before MPI_Init so that no request is lost.
class StopRequest {
 public:
  StopRequest();
  ~StopRequest();  // gives the signals back
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  // Set once and for all by the first request. Cheap: polled in every step.
  bool pending() const;
};

}  // namespace trainctl
