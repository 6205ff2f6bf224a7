// Implements recordings as CUDA graphs: capture, instantiation and launch.
#include "core/backend/cuda/runtime/runtime.h"

#include "core/backend/cuda/runtime/streams.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"

namespace trainctl::cuda {
namespace {

class GraphRecording final : public Recording {
 public:
  explicit GraphRecording(OwnedGraphExec graph) : graph_(std::move(graph)) {}
  void run(Stream& stream) override { check(cudaGraphLaunch(graph_.get(), stream_of(stream)), "cudaGraphLaunch"); }

 private:
  OwnedGraphExec graph_;
};

OwnedGraph end_capture(cudaStream_t stream) {
  return make<OwnedGraph>([stream](cudaGraph_t* graph) { return cudaStreamEndCapture(stream, graph); },
                          "cudaStreamEndCapture");
}

OwnedGraphExec capture(cudaStream_t stream, const std::function<void()>& queue) {
  // In this mode other threads may allocate and copy during the capture.
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  try {
    queue();
  } catch (...) {
    cudaGraph_t broken = nullptr;
    cudaStreamEndCapture(stream, &broken);
    if (broken != nullptr) cudaGraphDestroy(broken);
    throw;
  }
  const OwnedGraph graph = end_capture(stream);
  std::size_t nodes = 0;
  check(cudaGraphGetNodes(graph.get(), nullptr, &nodes), "cudaGraphGetNodes");
  log::debug(format("recorded a CUDA graph of {} nodes", nodes));
  // The graph's nodes keep the priorities of the streams from which they were captured.
  auto ready = make<OwnedGraphExec>(
      [&graph](cudaGraphExec_t* exec) {
        return cudaGraphInstantiate(exec, graph.get(), cudaGraphInstantiateFlagUseNodePriority);
      },
      "cudaGraphInstantiate");
  check(cudaGraphUpload(ready.get(), stream), "cudaGraphUpload");
  return ready;
}

}  // namespace

std::unique_ptr<Recording> record_graph(Stream& stream, const std::function<void()>& queue) {
  try {
    return std::make_unique<GraphRecording>(capture(stream_of(stream), queue));
  } catch (const Error& error) {
    cudaGetLastError();
    if (error.kind() != ErrorKind::internal) throw;
    log::warning(format("steps run without a CUDA graph, which makes small networks slower: {}", error.what()));
    return nullptr;
  }
}

}  // namespace trainctl::cuda
