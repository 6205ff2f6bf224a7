// Implements statuses, threads and operations of the emulated runtime.
#include "test/emulated_gpu/runtime.h"

#include <atomic>
#include <cstdio>
#include <map>
#include <set>

#include "test/emulated_gpu/grid.h"
#include "test/emulated_gpu/streams.h"

namespace emulated {
namespace {

std::atomic<bool> faulty = false;

// The state that CUDA keeps for each thread. (Thread-local storage belongs to __shared__ variables here.)
struct ThreadState {
  cudaError_t last = cudaSuccess;
  int device = 0;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  bool in_host_function = false;
};

ThreadState& this_thread() {
  static std::mutex& mutex = *new std::mutex;
  static auto& threads = *new std::map<std::thread::id, ThreadState>;
  const std::scoped_lock lock(mutex);
  return threads[std::this_thread::get_id()];
}

// Held while a kernel runs, since kernels share the thread indices and the fibers.
std::mutex& device_mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

}  // namespace

void fault(const std::string& what) {
  std::fprintf(stderr, "emulated GPU: %s\n", what.c_str());
  faulty = true;
}

bool forgive() {
  this_thread().last = cudaSuccess;
  return faulty.exchange(false);
}

cudaError_t note(cudaError_t status) {
  if (status != cudaSuccess) this_thread().last = status;
  return status;
}

cudaError_t call(const std::function<cudaError_t()>& body) {
  if (this_thread().in_host_function) return cudaErrorNotPermitted;
  if (device_count() == 0) return note(cudaErrorNoDevice);
  if (faulty) return note(cudaErrorLaunchFailure);
  const cudaError_t status = body();
  return note(faulty ? cudaErrorLaunchFailure : status);
}

int current_device() { return this_thread().device; }
cudaStreamCaptureMode& thread_capture_mode() { return this_thread().mode; }

void perform(const Operation& operation) {
  switch (operation.kind) {
    case Operation::Kind::device: {
      const std::scoped_lock one_at_a_time(device_mutex());
      const DeviceAccess access;
      operation.run();
      break;
    }
    case Operation::Kind::host:
      this_thread().in_host_function = true;
      operation.run();
      this_thread().in_host_function = false;
      break;
    case Operation::Kind::wait:
      operation.run();
      break;
  }
}

namespace {

// Loads a kernel, and returns whether it was loaded already.
bool load_kernel(const void* kernel) {
  static std::mutex& mutex = *new std::mutex;
  static auto& loaded = *new std::set<const void*>;
  const std::scoped_lock lock(mutex);
  return kernel == nullptr || !loaded.insert(kernel).second;
}

}  // namespace

void launch(const void* kernel, dim3 grid, dim3 block, cudaStream_t stream, std::function<void()> thread) {
  call([&] {
    cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(stream, &capturing);
    if (!load_kernel(kernel) && capturing != cudaStreamCaptureStatusNone) {
      if (const cudaError_t forbidden = forbid_while_capturing()) return forbidden;
    }
    const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
    const bool fits = threads >= 1 && threads <= 1024 && block.z <= 64 && grid.x >= 1 && grid.x <= 0x7fffffffu &&
                      grid.y >= 1 && grid.y <= 65535 && grid.z >= 1 && grid.z <= 65535;
    if (!fits) return cudaErrorInvalidConfiguration;
    return queue(stream, {Operation::Kind::device, [=] { run_grid(grid, block, thread); }});
  });
}

}  // namespace emulated

using emulated::call;

extern "C" {

cudaError_t cudaGetLastError() {
  auto& thread = emulated::this_thread();
  const cudaError_t last = thread.last;
  thread.last = cudaSuccess;
  return emulated::faulty ? cudaErrorLaunchFailure : last;
}
cudaError_t cudaPeekAtLastError() { return emulated::faulty ? cudaErrorLaunchFailure : emulated::this_thread().last; }

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  return call([&] {
    *attributes = {};
    emulated::load_kernel(kernel);
    return cudaSuccess;
  });
}
cudaError_t cudaSetDevice(int device) {
  return call([&] {
    if (device < 0 || device >= emulated::device_count()) return cudaErrorInvalidDevice;
    emulated::this_thread().device = device;
    return cudaSuccess;
  });
}
cudaError_t cudaGetDevice(int* device) {
  return call([&] {
    *device = emulated::current_device();
    return cudaSuccess;
  });
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return call([&] {
    std::swap(*mode, emulated::thread_capture_mode());
    return cudaSuccess;
  });
}
}
