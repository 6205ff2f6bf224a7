// Plans of cuDNN's engines, each made once and shared by equal ops. Engines that are compiled as their plans are made
// take 0.1 to 2 s each: several are made side by side.
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
  // A graph that cuDNN supports, and how to make it once more for another handle.
  struct KnownGraph {
    MakeGraph make;
    Graph graph;
  };
  using GraphPointer = std::shared_ptr<const KnownGraph>;
  // The plan of an engine, as list_engines() names it.
  struct Wanted {
    GraphPointer graph;
    std::string engine;
  };

  // The target outlives the plans. Where it is a handle, threads beside the caller's get their own for the same GPU:
  // cuDNN does not let them share one.
  Plans(const GraphTarget& target, int threads);

  const GraphTarget& target() const { return target_; }

  // Null where cuDNN does not support it.
  GraphPointer graph(const MakeGraph& make);

  // Makes those that are not there yet, side by side.
  void make_all(std::span<const Wanted> wanted);
  // Empty where this cuDNN cannot make it.
  std::optional<Plan> get(const Wanted& wanted);

  // What was made up to here and is in use stays for good; frees what is not in use and was made since the last call,
  // for timing alone. `all_stay`: also what is not in use yet.
  void settle(bool all_stay);

  int made() const { return made_; }

 private:
  struct Entry {
    std::optional<Plan> plan;
    bool stays = false;
  };
  using Key = std::pair<std::string, std::string>;  // the graph's text, the engine

  void open_handles(std::size_t threads);

  GraphTarget target_;
  std::size_t threads_;
  int device_ = 0;
  std::vector<OwnedCudnn> handles_;  // of the threads beside the caller's
  std::map<std::string, GraphPointer> graphs_;
  std::map<Key, Entry> plans_;
  int made_ = 0;
};

}  // namespace trainctl::cuda
