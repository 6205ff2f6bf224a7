// The host's waits for a device.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <exception>
#include <mutex>
#include <string_view>
#include <vector>

namespace trainctl::cuda {

// A check that ends a wait of the host if a peer has failed or a deadline has passed.
class Watch {
 public:
  virtual ~Watch() = default;
  // Called about every millisecond of a wait, with the time waited so far. Throws Error{peer} to end the wait.
  virtual void check(std::chrono::milliseconds waited) = 0;
};

// The waits that the streams and events of a backend share. A wait for one stream may, through events, depend on the
// work of another stream; therefore every wait calls all watches and rethrows the exceptions of host work of all
// streams.
class Waits {
 public:
  // Adds a watch; has no effect if it is already added. The caller must remove the watch before it is destroyed.
  void add(Watch& watch);
  void remove(Watch& watch);

  // Waits until query(object) no longer returns cudaErrorNotReady. Throws the errors of check() and of the watches.
  void await(cudaError_t (*query)(void* object), void* object, std::string_view call);

  // Called on any thread: keeps the first exception of host work until rethrow() throws it.
  void fail(std::exception_ptr error);
  void rethrow();

 private:
  void call_watches(std::chrono::milliseconds waited) const;

  std::vector<Watch*> watches_;
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace trainctl::cuda
