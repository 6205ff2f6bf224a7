// Assigns layers to stages: by the patterns of the config, or balanced, by dynamic programming over contiguous cuts.
#include "parallel/strategies/pipeline/stages.h"

#include <algorithm>
#include <limits>
#include <set>

#include "core/base/format.h"
#include "core/graph/passes/fuse.h"
#include "core/layers/model/names.h"
#include "core/spec/suggestion.h"
#include "parallel/strategies/op_cost.h"
#include "parallel/strategies/pipeline/pipeline.h"

namespace trainctl {
namespace {

// Returns the cost of an op's backward pass relative to its forward pass, for the gradients by inputs and by weights:
// 2, or 1 if the weights are frozen, or 0 if no layer up to this one is trained.
double backward_costs(const Graph& graph, const Op& op, const std::set<TensorId>& trained) {
  bool any = false, weights = false, frozen = false;
  for (TensorId id : op.inputs) {
    const bool is_trained = trained.contains(id), is_weight = graph.tensor(id).role == Role::parameter;
    any = any || is_trained;
    weights = weights || (is_weight && is_trained);
    frozen = frozen || (is_weight && !is_trained);
  }
  return !any ? 0 : frozen && !weights ? 1 : 2;
}

// A layer with ops: its path, its line in the config and its cost.
struct Unit {
  std::string path;
  SourceLocation location;
  double cost = 0;         // cost that it adds to its stage
  double sent_after = 0;   // cost of a cut after the layer: of sending all tensors that later layers read
  bool ends = true;        // whether a stage may end with it
  bool is_inside = false;  // whether a block around it has ops both before and after its end
};

// Weights that several layers share, and the numbers of these layers, ascending.
struct SharedWeights {
  const Tensor* tensor = nullptr;
  std::set<std::size_t> units;
};

std::vector<SharedWeights> shared_weights(const Graph& graph, const std::map<std::string, std::size_t>& number) {
  std::map<TensorId, TensorId> moving;  // running statistic; key: the value for a batch
  for (const GraphStatistic& statistic : graph.statistics) moving[statistic.batch_value] = statistic.moving;
  std::map<TensorId, std::set<std::size_t>> units;
  for (const Op& op : graph.ops) {
    if (prepares_input(graph, op)) continue;
    for (TensorId id : op.inputs) {
      if (graph.tensor(id).role == Role::parameter) units[id].insert(number.at(op.name));
    }
    for (TensorId id : op.outputs) {
      if (moving.contains(id)) units[moving.at(id)].insert(number.at(op.name));
    }
  }
  std::vector<SharedWeights> shared;
  for (auto& [id, of_id] : units) {
    if (of_id.size() > 1) shared.push_back({&graph.tensor(id), std::move(of_id)});
  }
  return shared;
}

std::map<std::string, std::size_t> numbers_of(const std::vector<Unit>& units) {
  std::map<std::string, std::size_t> numbers;
  for (std::size_t i = 0; i < units.size(); ++i) numbers[units[i].path] = i;
  return numbers;
}

std::vector<Unit> units_of(const Graph& graph, const ByteCosts& bytes_cost) {
  std::vector<Unit> units;
  std::map<std::string, std::size_t> last;  // number of the last op; key: the layer
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    if (!prepares_input(graph, graph.ops[i])) last[graph.ops[i].name] = i;
  }
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const Op& op = graph.ops[i];
    if (!last.contains(op.name) || last.at(op.name) != i) continue;
    units.push_back({op.name, op.location});
  }
  const std::map<std::string, std::size_t> number = numbers_of(units);
  for (const SharedWeights& shared : shared_weights(graph, number)) {
    if (shared.tensor->role != Role::statistic) continue;
    for (std::size_t i = *shared.units.begin(); i < *shared.units.rbegin(); ++i) units[i].ends = false;
  }
  // Costs are computed for the fused graph, since an op that is fused into another op has no cost of its own. An
  // example is the addition at the end of a residual block.
  const Graph fused = fuse(graph);
  const std::set<TensorId> trained = trained_tensors(fused);
  for (const Op& op : fused.ops) {
    if (prepares_input(fused, op)) continue;
    units[number.at(op.name)].cost += (1 + backward_costs(fused, op, trained)) * cost_of(op, fused.tensors, bytes_cost);
  }
  std::map<TensorId, std::size_t> maker;
  std::map<TensorId, std::size_t> last_reader;
  for (const Op& op : graph.ops) {
    if (prepares_input(graph, op)) continue;
    const std::size_t own = number.at(op.name);
    for (TensorId id : op.inputs) {
      if (!maker.contains(id)) continue;
      last_reader[id] = std::max(last_reader[id], own);
      for (std::size_t i = own; i < maker.at(id); ++i) units[i].is_inside = true;
    }
    for (TensorId id : op.outputs) maker[id] = own;
  }
  for (Unit& unit : units) unit.ends = unit.ends && !unit.is_inside;
  for (const auto& [tensor, reader] : last_reader) {
    const double sent = 2 * bytes_cost.to_rank * static_cast<double>(graph.tensor(tensor).type.bytes());
    for (std::size_t cut = maker.at(tensor); cut < reader; ++cut) units[cut].sent_after += sent;
  }
  return units;
}

// Returns the stage of each unit such that the cost of the costliest stage is minimal.
std::vector<int> balance(const std::vector<Unit>& units, int stages) {
  const std::size_t count = units.size();
  const auto stage_count = static_cast<std::size_t>(stages);
  // If the first k stages contain the first n units: the minimal cost of the costliest stage, and the first unit of the
  // last stage.
  std::vector<std::vector<double>> least(stage_count + 1,
                                         std::vector<double>(count + 1, std::numeric_limits<double>::max()));
  std::vector<std::vector<std::size_t>> begin(stage_count + 1, std::vector<std::size_t>(count + 1));
  least[0][0] = 0;
  for (std::size_t k = 1; k <= stage_count; ++k) {
    for (std::size_t end = k; end <= count; ++end) {
      double computed = 0;
      for (std::size_t first = end; first-- > k - 1;) {
        computed += units[first].cost;
        if (computed >= least[k][end]) break;  // a longer stage costs more
        if (first > 0 && !units[first - 1].ends) continue;
        const double sent =
            (first > 0 ? units[first - 1].sent_after : 0) + (end < count ? units[end - 1].sent_after : 0);
        const double costliest = std::max(least[k - 1][first], computed + sent);
        if (costliest >= least[k][end]) continue;
        least[k][end] = costliest;
        begin[k][end] = first;
      }
    }
  }
  std::vector<int> stage_of(count);
  std::size_t end = count;
  for (std::size_t k = stage_count; k > 0; --k) {
    const std::size_t first = begin[k][end];
    std::fill(stage_of.begin() + static_cast<std::ptrdiff_t>(first),
              stage_of.begin() + static_cast<std::ptrdiff_t>(end), static_cast<int>(k) - 1);
    end = first;
  }
  return stage_of;
}

// Reports shared weights that their stages cannot keep equal.
void check_shared(const Graph& graph, const std::vector<Unit>& units, const std::vector<int>& stage_of,
                  const StrategyOptions& options, Reader& reader) {
  for (const SharedWeights& shared : shared_weights(graph, numbers_of(units))) {
    const Unit &first = units[*shared.units.begin()], &last = units[*shared.units.rbegin()];
    const int begin = stage_of[*shared.units.begin()], end = stage_of[*shared.units.rbegin()];
    if (begin == end) continue;
    if (shared.tensor->role == Role::statistic) {
      reader.error(last.location,
                   format("layer '{}' updates '{}' in stage {}, and '{}' in stage {}: put all uses of a batch "
                          "normalization in one stage, or give each its own name",
                          last.path, shared.tensor->name, end, first.path, begin),
                   first.location, "first use");
      return;
    }
    if (options.sync_every.value > 1) {
      reader.error(options.sync_every.location,
                   format("with `sync_every` each stage averages its replicas separately, but '{}' and '{}', which "
                          "share '{}', are in stages {} and {}: put both in one stage, or leave `sync_every` out",
                          first.path, last.path, shared.tensor->name, begin, end),
                   last.location, "last use");
      return;
    }
  }
}

// Reports cuts inside a block whose ops are before and after the cut: its tensors would be sent to an earlier stage.
void check_blocks(const std::vector<Unit>& units, const std::vector<int>& stage_of, Reader& reader) {
  for (std::size_t i = 0; i + 1 < units.size(); ++i) {
    if (!units[i].is_inside || stage_of[i] == stage_of[i + 1]) continue;
    reader.error(
        units[i].location,
        format("layer '{}' is in stage {} and '{}' in stage {}, but the block around them cannot be cut there: "
               "put both in one stage",
               units[i].path, stage_of[i], units[i + 1].path, stage_of[i + 1]));
    return;
  }
}

// Computes the stage that the config assigns to each unit; -1 after an error. The pattern that matches the layer
// decides, or else the pattern that matches the innermost block around it.
class ConfiguredStages {
 public:
  ConfiguredStages(const std::vector<Unit>& units, const StrategyOptions& options, Reader& reader)
      : units_(units), options_(options), reader_(reader), stage_of_(units.size(), -1), found_(units.size()) {}

  std::vector<int> run() {
    const std::size_t before = reader_.count();
    for (const auto& [stage, patterns] : options_.place) {
      for (const Reference& pattern : patterns) match(pattern, stage_number(stage));
    }
    for (std::size_t i = 0; i < units_.size(); ++i) {
      if (stage_of_[i] >= 0) continue;
      reader_.error(units_[i].location, format("layer '{}' is in no stage of strategy.place", units_[i].path));
    }
    if (reader_.count() == before) check_order();
    return std::move(stage_of_);
  }

 private:
  struct Found {
    const Reference* pattern = nullptr;
    int above = 0;  // number of blocks above the match, see blocks_above()
  };

  void match(const Reference& pattern, int stage) {
    bool found = false;
    for (std::size_t i = 0; i < units_.size(); ++i) {
      const int above = blocks_above(pattern.name, units_[i].path);
      if (above < 0) continue;
      found = true;
      const Found& known = found_[i];
      if (known.pattern != nullptr && known.above < above) continue;
      if (known.pattern != nullptr && known.above == above && stage_of_[i] != stage) {
        reader_.error(pattern.location,
                      format("layer '{}' is in stage {} and in stage {}", units_[i].path, stage_of_[i], stage),
                      known.pattern->location, format("'{}'", known.pattern->name));
        return;
      }
      stage_of_[i] = stage;
      found_[i] = {&pattern, above};
    }
    if (found) return;
    std::vector<std::string> paths;
    for (const Unit& unit : units_) paths.push_back(unit.path);
    reader_.error(pattern.location, format("'{}' matches no layer{}", pattern.name, suggestion(pattern.name, paths)));
  }

  // Checks the order of the stages, since tensors are sent to later stages only.
  void check_order() {
    for (std::size_t i = 1; i < units_.size(); ++i) {
      if (stage_of_[i] >= stage_of_[i - 1]) continue;
      reader_.error(found_[i].pattern->location,
                    format("layer '{}' of stage {} comes after '{}' of stage {}: a stage is a run of consecutive "
                           "layers, and a block comes after the layers in it",
                           units_[i].path, stage_of_[i], units_[i - 1].path, stage_of_[i - 1]));
      return;
    }
  }

  const std::vector<Unit>& units_;
  const StrategyOptions& options_;
  Reader& reader_;
  std::vector<int> stage_of_;
  std::vector<Found> found_;  // pattern that decides the stage of each unit
};

}  // namespace

std::vector<std::string> layers_of(const Graph& graph) {
  std::vector<std::string> paths;
  for (const Unit& unit : units_of(graph, {})) paths.push_back(unit.path);
  return paths;
}

bool prepares_input(const Graph& graph, const Op& op) {
  if (op.inputs.size() != 1) return false;
  const Tensor& input = graph.tensor(op.inputs[0]);
  return input.role == Role::input && input.name == op.name;
}

Stages assign_stages(const Graph& graph, const StrategyOptions& options, int stages, const ByteCosts& bytes,
                     Reader& reader) {
  const std::vector<Unit> units = units_of(graph, bytes);
  if (static_cast<int>(units.size()) < stages) {
    reader.error(options.stages_location(), format("the network has {} layers, too few for {} stages: use at most {}",
                                                   units.size(), stages, units.size()));
    return {};
  }
  const auto ends = std::count_if(units.begin(), units.end(), [](const Unit& unit) { return unit.ends; });
  if (options.place.empty() && ends < stages) {
    reader.error(options.stages_location(), format("the network cannot be cut inside a block or between "
                                                   "the uses of a batch normalization: use at most {} stages",
                                                   ends));
    return {};
  }
  const std::size_t before = reader.count();
  const std::vector<int> stage_of =
      options.place.empty() ? balance(units, stages) : ConfiguredStages(units, options, reader).run();
  if (reader.count() == before) check_shared(graph, units, stage_of, options, reader);
  if (reader.count() == before) check_blocks(units, stage_of, reader);
  Stages result;
  for (std::size_t i = 0; i < units.size(); ++i) result[units[i].path] = stage_of[i];
  return result;
}

}  // namespace trainctl
