// Recordings as CUDA graphs: capture, instantiation, launch.
#include "core/backend/cuda/graph_recording.h"

#include "core/backend/cuda/streams.h"

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

}  // namespace

std::unique_ptr<Recording> record_graph(Stream& stream, const std::function<void()>& queue) {
  const cudaStream_t captured = stream_of(stream);
  // Other threads may go on allocating and copying meanwhile.
  check(cudaStreamBeginCapture(captured, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  try {
    queue();
  } catch (...) {
    cudaGraph_t broken = nullptr;
    cudaStreamEndCapture(captured, &broken);
    if (broken != nullptr) cudaGraphDestroy(broken);
    cudaGetLastError();
    throw;
  }
  const OwnedGraph graph = end_capture(captured);
  auto ready = make<OwnedGraphExec>(
      [&graph](cudaGraphExec_t* exec) { return cudaGraphInstantiate(exec, graph.get(), 0); }, "cudaGraphInstantiate");
  check(cudaGraphUpload(ready.get(), captured), "cudaGraphUpload");
  return std::make_unique<GraphRecording>(std::move(ready));
}

}  // namespace trainctl::cuda
