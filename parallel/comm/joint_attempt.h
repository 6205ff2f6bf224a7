// Work of all ranks that may fail on some of them: all end it alike.
#pragma once

#include <exception>
#include <functional>

#include "core/backend/communicator.h"

namespace trainctl {

class JointAttempt {
 public:
  JointAttempt(Communicator& world, Stream& stream) : world_(world), stream_(stream) {}

  // Does this rank's work. An Error that it throws is kept until throw_if_any_failed(), and later work is left out;
  // other exceptions pass. The work calls no collective.
  void run(const std::function<void()>& work);
  // Collective: waits for all ranks. Where one of them failed, all throw the CollectiveError that tells the failure of
  // the lowest one, with its rank behind it where that is not rank 0.
  void throw_if_any_failed();

 private:
  Communicator& world_;
  Stream& stream_;
  std::exception_ptr failure_;
};

}  // namespace trainctl
