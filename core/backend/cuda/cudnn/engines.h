// Engines of cuDNN for an operation graph: which ones it offers, as text that can be kept, and plans made from them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/backend/cuda/cudnn/graph.h"

namespace trainctl::cuda {

// What an engine must hold to.
struct EngineRules {
  bool deterministic = true;
  bool tensor_cores = true;  // without them float32 products keep all of their bits
  std::int64_t most_workspace_bytes = std::int64_t{256} << 20;
  int most = 14;  // engines to list, variants counted
};

// The engines for a finalized graph, with their knobs, as "62:2=4,13=0": the most promising first by cuDNN's
// heuristics; its fallbacks where these have none. Empty where cuDNN has none that holds to the rules.
std::vector<std::string> list_engines(const Graph& graph, const GraphTarget& target, const EngineRules& rules);

// An engine made ready for a graph. Runs are queued, by the handle that it was made for; they allocate nothing after
// the first on the same places. Copies share the plan.
class Plan {
 public:
  // Of an engine that list_engines() gave, now or in an earlier run. Empty where this cuDNN cannot make it.
  static std::optional<Plan> make(const Graph& graph, const GraphTarget& target, std::string_view engine);

  Plan(const Plan& other);
  Plan(Plan&&) = default;
  Plan& operator=(Plan&&) = default;

  std::int64_t workspace_bytes() const { return workspace_bytes_; }
  // Whether there are copies.
  bool is_shared() const { return plan_.use_count() > 1; }

  // `places` are those of the graph's tensors in memory, in the order in which they were added.
  void run(cudaStream_t stream, std::span<void* const> places, void* workspace);

 private:
  // A set of places, made known to cuDNN.
  struct Pack {
    std::vector<void*> places;  // the workspace behind the tensors
    Descriptor descriptor{CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR};
  };

  Plan(std::shared_ptr<const Descriptor> plan, std::vector<std::int64_t> ids, cudnnHandle_t handle);
  const Pack& pack(std::span<void* const> places, void* workspace);

  std::shared_ptr<const Descriptor> plan_;
  std::vector<std::int64_t> ids_;
  cudnnHandle_t handle_ = nullptr;  // null: of a GPU that is only described
  std::vector<Pack> packs_;         // one for each slot that the op has run in
  std::int64_t workspace_bytes_ = 0;
};

}  // namespace trainctl::cuda
