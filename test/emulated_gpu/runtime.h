// Declarations that the files of the emulated CUDA runtime, and the emulated libraries, share.
//
// The emulation runs CUDA, and the parts of its libraries that trainctl uses, on the CPU, so that every line of the
// CUDA module runs in tests on machines without a GPU. Of all legal behaviours it has the most awkward one: streams run
// as late as possible, blocks and threads run in changing orders, memory starts as NaN, and only device code can access
// device memory. It refuses what CUDA's documentation does not allow.
//
// A test that passes proves that the module's code is right under CUDA's rules as they are written here: indices, sums,
// orderings, captures, lifetimes, descriptors. It proves nothing about a GPU: neither that nvcc compiles the kernels,
// nor their memory model, timing, speed or rounding, nor that cuBLASLt, cuDNN and NCCL offer and accept the same there.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace emulated {

// Reports on standard error what a kernel or an operation did wrong. From then on every call returns
// cudaErrorLaunchFailure, as on a GPU.
void fault(const std::string& what);
// Clears a fault, which no GPU does, for tests of faults. Returns false if there was none.
bool forgive();

// Calls the body of an API function, unless there was a fault or the call comes from a host function, and stores its
// status for cudaGetLastError().
cudaError_t call(const std::function<cudaError_t()>& body);
// Stores a status for cudaGetLastError() if it is an error, and returns it.
cudaError_t note(cudaError_t status);

// The device that this thread has chosen.
int current_device();
int device_count();

// Lets the process access device memory while an object exists. Objects may be nested.
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;
};

// The kind of memory at an address. All memory that CUDA did not allocate is pageable.
enum class MemoryKind { pageable, pinned, device };
MemoryKind memory_kind(const void* memory);
// Whether device code may use these bytes: within one live allocation.
bool device_may_use(const void* memory, std::size_t bytes);

// Work that a stream runs in its order, and that a graph repeats.
struct Operation {
  enum class Kind { device, host, wait } kind = Kind::device;
  // device: runs with access to device memory, one at a time in the process. host: a host function. wait: waits for
  // other streams or ranks; it gets access to device memory itself if it needs it.
  std::function<void()> run;
};
void perform(const Operation& operation);

// Queues an operation on a stream, or adds it to the graph that the stream captures.
cudaError_t queue(cudaStream_t stream, Operation operation);

// Fails, and invalidates the captures concerned, if this thread must not make calls that wait for or change the device.
cudaError_t forbid_while_capturing();

}  // namespace emulated
