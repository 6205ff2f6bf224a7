// The host's waits for a device.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <exception>
#include <mutex>
#include <string_view>
#include <vector>

namespace trainctl::cuda {

// Says when a wait of the host is in vain: a peer has failed, a deadline has passed.
class Watch {
 public:
  virtual ~Watch() = default;
  // Throws Error{peer} where waiting any longer is in vain. Called about every millisecond of a wait.
  virtual void check(std::chrono::milliseconds waited) = 0;
};

// What the streams and events of a backend share: who waits for one stream may, through events, wait for work of
// another, so that every wait asks all watches and throws what host work of any stream has thrown.
class Waits {
 public:
  // Once per watch, however often it is added; the caller removes it before it dies.
  void add(Watch& watch);
  void remove(Watch& watch);

  // Waits until query(object) no longer says cudaErrorNotReady.
  void await(cudaError_t (*query)(void* object), void* object, std::string_view call);

  // Keeps the first failure of host work, from any thread, until it is thrown.
  void fail(std::exception_ptr error);
  void rethrow();

 private:
  std::vector<Watch*> watches_;
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace trainctl::cuda
