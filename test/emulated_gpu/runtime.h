// The emulated CUDA runtime: what its files, and the emulated libraries, share.
//
// An emulation of CUDA and of those parts of its libraries that trainctl uses, on the CPU, so that the CUDA module
// runs, line by line, in tests on machines without a GPU. It does the legal thing that is most awkward: streams run as
// late as they may, blocks and threads in changing orders, memory starts as NaN, and device memory can be touched by
// device code only; and it refuses what CUDA's documentation does not allow.
//
// A pass proves that the module's code does what it should under CUDA's rules as they are written here: indices,
// sums, orderings, captures, life times, descriptors. It proves nothing of a GPU: not that the kernels compile for one
// (nvcc's part), nor their memory model, timing, speed or rounding, nor that cuBLASLt, cuDNN and NCCL offer and accept
// the same there.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace emulated {

// Says on standard error what a kernel or an operation did wrong. From here on every call returns
// cudaErrorLaunchFailure, as on a GPU.
void fault(const std::string& what);
// Forgets a fault, which no GPU does: for tests of faults. False where there was none.
bool forgive();

// Calls the body of an API function, unless an earlier fault or the place of the call forbids it, and notes its status
// for cudaGetLastError().
cudaError_t call(const std::function<cudaError_t()>& body);
// Notes a status.
cudaError_t note(cudaError_t status);

// The device that this thread has chosen.
int current_device();
int device_count();

// Opens device memory to the process while one lives. May be nested.
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;
};

// Where memory lies. Pageable is all that CUDA did not allocate.
enum class MemoryKind { pageable, pinned, device };
MemoryKind memory_kind(const void* memory);
// Whether device code may use these bytes: within one live allocation.
bool device_may_use(const void* memory, std::size_t bytes);

// Work that a stream does in its order. A graph repeats it.
struct Operation {
  enum class Kind { device, host, wait } kind = Kind::device;
  // device: with device memory open, one at a time in the process. host: a host function. wait: for other streams or
  // ranks; opens device memory itself where it needs it.
  std::function<void()> run;
};
void perform(const Operation& operation);

// Queues it on a stream, or adds it to the graph that the stream captures.
cudaError_t queue(cudaStream_t stream, Operation operation);

// Fails, and spoils the captures concerned, where this thread may not make calls that wait for or change the device.
cudaError_t forbid_while_capturing();

}  // namespace emulated
