// Runs work that may fail on some ranks, so that all ranks then fail together.
#pragma once

#include <exception>
#include <functional>

#include "core/backend/communicator.h"

namespace trainctl {

class JointAttempt {
 public:
  JointAttempt(Communicator& world, Stream& stream) : world_(world), stream_(stream) {}

  // Runs this rank's work. An Error is kept until throw_if_any_failed(), and later work is skipped; other exceptions
  // propagate. The work must not call a collective.
  void run(const std::function<void()>& work);
  // All ranks must call this function, which waits for all of them. If any rank failed, all throw the same
  // CollectiveError: the failure of the lowest rank that failed, followed by its number in the run, and by its host if
  // the ranks run on several hosts: "(rank 2 on n1)". Rank 0 of the run is not named.
  void throw_if_any_failed();

 private:
  Communicator& world_;
  Stream& stream_;
  std::exception_ptr failure_;
};

}  // namespace trainctl
