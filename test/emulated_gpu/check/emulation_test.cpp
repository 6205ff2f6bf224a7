// Tests that the emulation is as strict as documented: each rule is broken once.
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <vector>

#include "test/catch.h"
#include "test/emulated_gpu/grid.h"
#include "test/emulated_gpu/runtime.h"

namespace emulation_test {
using emulated::forgive;

namespace {

template <class Kernel>
cudaError_t run(dim3 grid, int threads, Kernel kernel) {
  emulated::launch(nullptr, grid, dim3(static_cast<unsigned>(threads)), nullptr, kernel);
  const cudaError_t launched = cudaGetLastError();
  return launched == cudaSuccess ? cudaDeviceSynchronize() : launched;
}

// Device memory for `count` floats; get() reads their values.
struct Floats {
  explicit Floats(std::size_t count) : count(count) {
    REQUIRE(cudaMalloc(&data, count * sizeof(float)) == cudaSuccess);
  }
  ~Floats() { cudaFree(data); }
  std::vector<float> get() const {
    std::vector<float> host(count);
    REQUIRE(cudaMemcpy(host.data(), data, count * sizeof(float), cudaMemcpyDeviceToHost) == cudaSuccess);
    return host;
  }

  std::size_t count;
  float* data = nullptr;
};

struct Stream {
  Stream() { REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess); }
  ~Stream() { cudaStreamDestroy(stream); }
  operator cudaStream_t() const { return stream; }
  cudaStream_t stream = nullptr;
};
struct Event {
  Event() { REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess); }
  ~Event() { cudaEventDestroy(event); }
  operator cudaEvent_t() const { return event; }
  cudaEvent_t event = nullptr;
};

// Sets a float on the stream.
cudaError_t set(float* target, float value, cudaStream_t stream) {
  emulated::launch(nullptr, dim3(1), dim3(1), stream, [=] { *target = value; });
  return cudaGetLastError();
}

}  // namespace

TEST_CASE("a kernel that hangs is found") {
  CHECK(run(dim3(2), 64, [] {
          if (threadIdx.x < 40) __syncthreads();
        }) == cudaErrorLaunchFailure);
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, 4) == cudaErrorLaunchFailure);  // the error stays
  CHECK(forgive());
  CHECK(run(dim3(1), 32, [] {
          if (threadIdx.x % 2 == 0)
            __shfl_xor_sync(0xffffffffu, 1.0f, 1);
          else
            __syncthreads();
        }) == cudaErrorLaunchFailure);
  CHECK(forgive());
  CHECK(run(dim3(4), 256, [] { __syncthreads(); }) == cudaSuccess);
}

TEST_CASE("grids and blocks have limits") {
  CHECK(run(dim3(1), 1025, [] {}) == cudaErrorInvalidConfiguration);
  CHECK(run(dim3(1, 65536), 1, [] {}) == cudaErrorInvalidConfiguration);
  CHECK(run(dim3(0), 32, [] {}) == cudaErrorInvalidConfiguration);
}

TEST_CASE("every thread of every block runs once, and shared memory starts as NaN in each") {
  Floats found(3 * 4 * 96), sums(12);
  REQUIRE(cudaMemset(found.data, 0, found.count * sizeof(float)) == cudaSuccess);
  REQUIRE(run(dim3(3, 4), 96, [f = found.data, s = sums.data] {
            __shared__ float total[96];
            const unsigned block = blockIdx.x + gridDim.x * blockIdx.y;
            f[block * blockDim.x + threadIdx.x] += std::isnan(total[threadIdx.x]) ? 1.0f : 100.0f;
            __syncthreads();
            total[threadIdx.x] = static_cast<float>(threadIdx.x + block);
            __syncthreads();
            float sum = 0;
            for (float value : total) sum += value;
            if (threadIdx.x == 95) s[block] = sum;
          }) == cudaSuccess);
  CHECK(found.get() == std::vector<float>(found.count, 1.0f));
  for (unsigned block = 0; block < 12; ++block)
    CHECK(sums.get()[block] == 95.0f * 96 / 2 + 96.0f * static_cast<float>(block));
}

TEST_CASE("warps exchange values, and get NaN from lanes that take no part") {
  Floats results(40);
  REQUIRE(run(dim3(1), 40, [r = results.data] {
            float sum = static_cast<float>(threadIdx.x);
            const unsigned vote = __ballot_sync(0xffffffffu, threadIdx.x % 3 == 0);
            for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
            r[threadIdx.x] = vote == 0x49249249u || threadIdx.x >= 32 ? sum : -1.0f;
          }) == cudaSuccess);
  const auto values = results.get();
  for (int i = 0; i < 32; ++i) CHECK(values[static_cast<std::size_t>(i)] == 31.0f * 32 / 2);
  for (int i = 32; i < 40; ++i) CHECK(std::isnan(values[static_cast<std::size_t>(i)]));
}

TEST_CASE("the host cannot touch device memory, and fresh memory is NaN") {
  const Floats memory(100);
  CHECK(std::isnan(memory.get()[99]));
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    const volatile float value = *memory.data;
    _exit(value > 0 ? 1 : 2);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV));
}

TEST_CASE("streams run late, so that a missing ordering shows") {
  const Floats memory(1);
  Stream first, second;
  Event event;
  float* pinned = nullptr;
  REQUIRE(cudaMallocHost(reinterpret_cast<void**>(&pinned), sizeof(float)) == cudaSuccess);

  *pinned = 1;  // read when the stream runs the copy
  REQUIRE(cudaMemcpyAsync(memory.data, pinned, sizeof(float), cudaMemcpyDefault, first) == cudaSuccess);
  *pinned = 2;
  REQUIRE(cudaStreamSynchronize(first) == cudaSuccess);
  CHECK(memory.get()[0] == 2);

  REQUIRE(set(memory.data, 3, first) == cudaSuccess);  // without an event the second stream overtakes
  REQUIRE(set(memory.data, 4, second) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(second) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(first) == cudaSuccess);
  CHECK(memory.get()[0] == 3);

  REQUIRE(set(memory.data, 5, first) == cudaSuccess);
  REQUIRE(cudaEventRecord(event, first) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(second, event, 0) == cudaSuccess);
  REQUIRE(set(memory.data, 6, second) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(second) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(first) == cudaSuccess);
  CHECK(memory.get()[0] == 6);
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
}

TEST_CASE("a capture becomes a graph that keeps its orderings") {
  const Floats memory(2);
  Stream first, second;
  Event fork_event, join;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal) == cudaSuccess);
  REQUIRE(set(memory.data, 1, first) == cudaSuccess);
  REQUIRE(cudaEventRecord(fork_event, first) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(second, fork_event, 0) == cudaSuccess);
  REQUIRE(set(memory.data, 2, second) == cudaSuccess);
  REQUIRE(set(memory.data + 1, 7, first) == cudaSuccess);
  REQUIRE(cudaEventRecord(join, second) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(first, join, 0) == cudaSuccess);
  REQUIRE(cudaStreamEndCapture(first, &graph) == cudaSuccess);
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  CHECK(std::isnan(memory.get()[0]));  // nothing has run yet
  for (int i = 0; i < 2; ++i) {
    REQUIRE(set(memory.data, 9, first) == cudaSuccess);
    REQUIRE(cudaGraphLaunch(exec, first) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(first) == cudaSuccess);
    CHECK(memory.get() == std::vector<float>{2, 7});
  }
  CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
}

TEST_CASE("a kernel that was never loaded is not captured") {
  const int kernels[2] = {};  // their addresses identify the kernels
  const Stream stream;
  const Floats value(1);
  const auto captured = [&](const void* kernel) {
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    emulated::launch(kernel, dim3(1), dim3(1), stream, [target = value.data] { *target = 1; });
    const cudaError_t launched = cudaGetLastError();
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();
    return launched == cudaSuccess && ended == cudaSuccess;
  };
  CHECK_FALSE(captured(&kernels[0]));
  CHECK(captured(&kernels[0]));
  cudaFuncAttributes attributes{};
  REQUIRE(cudaFuncGetAttributes(&attributes, static_cast<const void*>(&kernels[1])) == cudaSuccess);
  CHECK(captured(&kernels[1]));
}

TEST_CASE("a call that a capture does not allow makes it invalid") {
  const Floats memory(1);
  Stream first, second;
  Event event;
  cudaGraph_t graph = nullptr;
  void* more = nullptr;
  float host = 0;
  const auto begin = [&] {
    cudaGetLastError();
    REQUIRE(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  };

  begin();
  CHECK(cudaMalloc(&more, 4) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(first, &graph) == cudaErrorStreamCaptureInvalidated);
  begin();
  CHECK(cudaStreamSynchronize(first) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(first, &graph) == cudaErrorStreamCaptureInvalidated);
  begin();
  CHECK(cudaMemcpyAsync(memory.data, &host, 4, cudaMemcpyDefault, first) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(first, &graph) == cudaErrorStreamCaptureInvalidated);

  REQUIRE(cudaEventRecord(event, second) == cudaSuccess);  // before the capture
  begin();
  CHECK(cudaStreamWaitEvent(first, event, 0) == cudaErrorStreamCaptureIsolation);
  CHECK(cudaStreamEndCapture(first, &graph) == cudaErrorStreamCaptureInvalidated);

  begin();  // work that is never joined
  REQUIRE(cudaEventRecord(event, first) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(second, event, 0) == cudaSuccess);
  REQUIRE(set(memory.data, 1, second) == cudaSuccess);
  CHECK(cudaStreamEndCapture(first, &graph) == cudaErrorStreamCaptureUnjoined);
  CHECK(graph == nullptr);
  cudaGetLastError();
}

}  // namespace emulation_test
