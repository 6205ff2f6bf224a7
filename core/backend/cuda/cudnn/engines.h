// Lists cuDNN's engines for an operation graph, as texts for the record of kernel choices, and makes plans from them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/backend/cuda/cudnn/graph.h"

namespace trainctl::cuda {

// The rules that an engine must obey.
struct EngineRules {
  bool deterministic = true;
  bool tensor_cores = true;  // if false, float32 products are not rounded to TF32
  std::int64_t max_workspace_bytes = std::int64_t{256} << 20;
  int max_engines = 14;  // maximum length of the list; each variant of an engine counts
};

// The engines for a finalized graph, each as text: "62:2=4,13=0" is engine 62 with knob 2 set to 4 and knob 13 set to
// 0. They are in the order of cuDNN's heuristics, the most promising first; if the heuristics return no engine, these
// are cuDNN's fallback engines. Empty if no engine obeys the rules.
std::vector<std::string> list_engines(const Graph& graph, const GraphTarget& target, const EngineRules& rules);

// An engine prepared for a graph. run() queues the work with the handle for which the plan was made, and allocates only
// in the first run on a set of addresses. Copies share cuDNN's plan.
class Plan {
 public:
  // Makes the plan of an engine that list_engines() returned, now or in an earlier run. Empty if this version of cuDNN
  // cannot make it.
  static std::optional<Plan> make(const Graph& graph, const GraphTarget& target, std::string_view engine);

  Plan(const Plan& other);
  Plan(Plan&&) = default;
  Plan& operator=(Plan&&) = default;

  std::int64_t workspace_bytes() const { return workspace_bytes_; }
  // Whether copies of this plan exist.
  bool is_shared() const { return plan_.use_count() > 1; }

  // `buffers` are the addresses of the graph's tensors in memory, in the order in which the tensors were added.
  void run(cudaStream_t stream, std::span<void* const> buffers, void* workspace);

 private:
  // cuDNN's descriptor of a set of addresses.
  struct Pack {
    std::vector<void*> buffers;  // addresses of the tensors, then of the workspace
    Descriptor descriptor{CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR};
  };

  Plan(std::shared_ptr<const Descriptor> plan, std::vector<std::int64_t> ids, cudnnHandle_t handle);
  const Pack& pack(std::span<void* const> buffers, void* workspace);

  std::shared_ptr<const Descriptor> plan_;
  std::vector<std::int64_t> ids_;
  cudnnHandle_t handle_ = nullptr;  // null if the plan is for a described GPU (GraphTarget)
  std::vector<Pack> packs_;         // one for each slot that the op has run in
  std::int64_t workspace_bytes_ = 0;
};

}  // namespace trainctl::cuda
