// Implements captures and graphs of the emulated runtime.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "test/emulated_gpu/streams.h"

using namespace emulated;

struct CUgraph_st {
  std::vector<Capture::Node> nodes;
};

struct CUgraphExec_st {
  std::shared_ptr<const std::vector<Operation>> operations;  // in the order in which they run
};

namespace {

// Returns the operations, each after those that it depends on. If several could be next, the one captured last is.
std::vector<Operation> ordered(const std::vector<Capture::Node>& nodes) {
  std::vector<Operation> order;
  std::vector<bool> taken(nodes.size(), false);
  while (order.size() < nodes.size()) {
    std::size_t next = nodes.size();
    do {
      --next;
    } while (taken[next] || !std::all_of(nodes[next].after.begin(), nodes[next].after.end(),
                                         [&](std::size_t before) { return taken[before]; }));
    taken[next] = true;
    order.push_back(nodes[next].operation);
  }
  return order;
}

// Ends a capture for all of its streams.
void release(const std::shared_ptr<Capture>& capture) {
  for (const auto& member : capture->members) {
    member->capture = nullptr;
    member->tips.clear();
  }
  capture->origin = nullptr;
  std::erase(state().captures, capture);
}

// Whether this process refuses to end captures: the rank that TRAINCTL_EMULATED_CAPTURE_REFUSES names.
bool refuses_captures() {
  const char *refusing = std::getenv("TRAINCTL_EMULATED_CAPTURE_REFUSES"), *rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return refusing != nullptr && rank != nullptr && std::strcmp(refusing, rank) == 0;
}

cudaError_t instantiate(cudaGraphExec_t* made, cudaGraph_t graph) {
  if (graph == nullptr) return cudaErrorInvalidValue;
  *made = new CUgraphExec_st{std::make_shared<const std::vector<Operation>>(ordered(graph->nodes))};
  return cudaSuccess;
}

}  // namespace

namespace emulated {

std::vector<bool> Capture::before(const std::vector<std::size_t>& tips) const {
  std::vector<bool> reached(nodes.size(), false);
  std::vector<std::size_t> open = tips;
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    if (reached[node]) continue;
    reached[node] = true;
    open.insert(open.end(), nodes[node].after.begin(), nodes[node].after.end());
  }
  return reached;
}

cudaError_t invalidate(Capture& capture, cudaError_t status) {
  capture.valid = false;
  return status;
}

cudaError_t forbid_while_capturing() {
  const auto mode = thread_capture_mode();
  if (mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  const std::scoped_lock lock(state().mutex);
  cudaError_t status = cudaSuccess;
  for (const auto& capture : state().captures) {
    const bool own = capture->thread == std::this_thread::get_id() && capture->mode != cudaStreamCaptureModeRelaxed;
    const bool other = mode == cudaStreamCaptureModeGlobal && capture->mode == cudaStreamCaptureModeGlobal;
    if (own || other) status = invalidate(*capture, cudaErrorStreamCaptureUnsupported);
  }
  return status;
}

}  // namespace emulated

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call([&] {
    const auto queue = queue_of(stream);
    if (queue == nullptr) return cudaErrorInvalidResourceHandle;
    if (stream == nullptr || stream == cudaStreamLegacy) return cudaErrorStreamCaptureUnsupported;
    const std::scoped_lock lock(state().mutex);
    if (queue->capture != nullptr) return cudaErrorIllegalState;
    const auto capture = std::make_shared<Capture>();
    capture->origin = queue.get();
    capture->thread = std::this_thread::get_id();
    capture->mode = mode;
    capture->members.push_back(queue);
    queue->capture = capture;
    state().captures.push_back(capture);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call([&] {
    *graph = nullptr;
    const auto queue = queue_of(stream);
    if (queue == nullptr) return cudaErrorInvalidResourceHandle;
    const std::scoped_lock lock(state().mutex);
    const auto capture = queue->capture;
    if (capture == nullptr) return cudaErrorIllegalState;
    if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id()) {
      return cudaErrorStreamCaptureWrongThread;
    }
    if (capture->origin != queue.get()) return invalidate(*capture, cudaErrorStreamCaptureUnmatched);
    const bool valid = capture->valid;
    const auto reached = capture->before(queue->tips);
    const bool joined = std::find(reached.begin(), reached.end(), false) == reached.end();
    release(capture);
    if (!valid || refuses_captures()) return cudaErrorStreamCaptureInvalidated;
    if (!joined) return cudaErrorStreamCaptureUnjoined;
    *graph = new CUgraph_st{capture->nodes};
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return call([&] {
    const auto queue = queue_of(stream);
    if (queue == nullptr) return cudaErrorInvalidResourceHandle;
    const std::scoped_lock lock(state().mutex);
    *status = queue->capture == nullptr ? cudaStreamCaptureStatusNone
              : queue->capture->valid   ? cudaStreamCaptureStatusActive
                                        : cudaStreamCaptureStatusInvalidated;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  return call([&] { return instantiate(made, graph); });
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  return call([&] { return instantiate(made, graph); });
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  return call([&] {
    if (nodes != nullptr) return cudaErrorNotSupported;
    *count = graph->nodes.size();
    return cudaSuccess;
  });
}
cudaError_t cudaGraphUpload(cudaGraphExec_t graph, cudaStream_t stream) {
  return call([&] { return graph == nullptr ? cudaErrorInvalidValue : queue(stream, {Operation::Kind::wait, [] {}}); });
}
// A launch on a stream that captures becomes a node of that graph.
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  return call([&] {
    if (graph == nullptr) return cudaErrorInvalidValue;
    const auto operations = graph->operations;
    const bool quick = std::all_of(operations->begin(), operations->end(),
                                   [](const Operation& one) { return one.kind == Operation::Kind::device; });
    if (!quick) {
      return queue(stream, {Operation::Kind::wait, [operations] {
                              for (const Operation& one : *operations) perform(one);
                            }});
    }
    return queue(stream, {Operation::Kind::device, [operations] {
                            for (const Operation& one : *operations) one.run();
                          }});
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call([&] {
    delete graph;
    return cudaSuccess;
  });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  return call([&] {
    delete graph;
    return cudaSuccess;
  });
}
}
