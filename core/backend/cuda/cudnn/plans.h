// Plans of cuDNN's engines, each made once and shared by equal ops. Engines that are compiled when their plans are made
// take 0.1 to 2 s each, so several plans are made in parallel.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/backend/cuda/cudnn/engines.h"

namespace trainctl::cuda {

class Plans {
 public:
  using MakeGraph = std::function<Graph()>;
  // A graph that cuDNN supports, and the function that makes the graph again for another handle.
  struct KnownGraph {
    MakeGraph make;
    Graph graph;
  };
  using GraphPointer = std::shared_ptr<const KnownGraph>;
  // Names a plan: a graph, and an engine as list_engines() writes it.
  struct Wanted {
    GraphPointer graph;
    std::string engine;
  };

  // The target must outlive the plans. If it is a handle, each further thread gets its own handle for the same GPU,
  // since threads must not share a handle of cuDNN.
  Plans(const GraphTarget& target, int threads);

  const GraphTarget& target() const { return target_; }

  // The graph that `make` makes, finalized; null if cuDNN does not support it.
  GraphPointer graph(const MakeGraph& make);

  // Makes the plans that do not exist yet, in parallel.
  void make_all(std::span<const Wanted> wanted);
  // The plan, made now if it does not exist yet; empty if this version of cuDNN cannot make it.
  std::optional<Plan> get(const Wanted& wanted);

  // Keeps the plans that are in use, or all plans with `all_stay`, until this object is destroyed. Frees the other
  // plans that were made since the last call, which were needed for timing only.
  void settle(bool all_stay);

  int made() const { return made_; }

 private:
  struct Entry {
    std::optional<Plan> plan;
    bool stays = false;
  };
  using Key = std::pair<std::string, std::string>;  // the graph's text, and the engine

  void open_handles(std::size_t threads);

  GraphTarget target_;
  std::size_t threads_;
  int device_ = 0;
  std::vector<OwnedCudnn> handles_;  // one for each thread except the calling one
  std::map<std::string, GraphPointer> graphs_;
  std::map<Key, Entry> plans_;
  int made_ = 0;
};

}  // namespace trainctl::cuda
