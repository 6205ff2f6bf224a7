// Compares and repairs replicas during training.
#include "parallel/trainer/hooks/replica_comparison.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "core/base/table.h"
#include "core/exec/engine.h"
#include "core/exec/interfaces/metrics_sink.h"
#include "parallel/comm/text.h"
#include "parallel/trainer/loop/training_state.h"

namespace trainctl {
namespace {

// Returns the weights that are not sharded, so that every replica holds the same elements.
std::vector<NamedTensor> replicated_weights(const Engine& engine) {
  std::vector<NamedTensor> weights = engine.weights();
  const Program& program = engine.program(0).program;
  if (!program.flat.shares(Quantity::parameters)) return weights;
  std::set<std::string> sharded;
  for (const FlatEntry& entry : program.flat.parameters) {
    if (entry.offset < program.flat.trainable_count) sharded.insert(program.tensor(entry.parameter).name);
  }
  std::erase_if(weights, [&](const NamedTensor& tensor) { return sharded.contains(tensor.name); });
  return weights;
}

}  // namespace

ReplicaComparison::ReplicaComparison(std::int64_t every, OnCorruption on_corruption, Parts parts)
    : every_(every),
      on_corruption_(on_corruption),
      parts_(std::move(parts)),
      weights_(replicated_weights(parts_.engine), parts_.replicas, parts_.world.rank(), parts_.stream, parts_.hosts) {
  const bool is_replicated = !parts_.engine.program(0).program.flat.shares(Quantity::states);
  if (on_corruption != OnCorruption::repair || !is_replicated) return;
  state_ = std::make_unique<ReplicaCheck>(parts_.engine.state(), parts_.replicas, parts_.world.rank(), parts_.stream,
                                          parts_.hosts);
}

void ReplicaComparison::on_pause(const TrainingState& state, std::int64_t before) {
  if (passed_multiple(before, state.step, every_)) compare(state);
}

// Compares the weights and, if these differ and can be repaired, the optimizer's state.
std::optional<ReplicaDifference> ReplicaComparison::find() {
  parts_.engine.download();
  std::optional<ReplicaDifference> found = weights_.find(parts_.stream);
  if (!found || !state_) return found;
  const std::optional<ReplicaDifference> state = state_->find(parts_.stream);
  if (!state) return found;
  found->text += "; " + state->text;
  found->majority = found->majority && state->majority;
  for (std::size_t i = 0; i < found->is_odd.size(); ++i) found->is_odd[i] = found->is_odd[i] || state->is_odd[i];
  std::set<int> odd(found->odd.begin(), found->odd.end());
  odd.insert(state->odd.begin(), state->odd.end());
  found->odd.assign(odd.begin(), odd.end());
  return found;
}

// The first replica whose tensors all are those of the majority; -1 if there is none.
int ReplicaComparison::good_replica(const ReplicaDifference& difference) const {
  const auto good = std::find(difference.is_odd.begin(), difference.is_odd.end(), false);
  if (!difference.majority || good == difference.is_odd.end()) return -1;
  return static_cast<int>(good - difference.is_odd.begin());
}

// All ranks decide together, since the ranks of one position of the mesh may differ from each other while those of
// another position do not.
void ReplicaComparison::compare(const TrainingState& state) {
  const double begin = seconds_now();
  const std::optional<ReplicaDifference> found = find();
  if (parts_.sink != nullptr)
    log::debug(format("the replicas were compared in {}", seconds_text(seconds_now() - begin)));
  Communicator& world = parts_.world;
  const bool alone = parts_.replicas.size() == world.size();  // all ranks have the same finding
  if (alone ? !found : !any_rank(found.has_value(), world, parts_.stream)) return;
  const int good = found ? good_replica(*found) : 0;
  const bool repairs = on_corruption_ == OnCorruption::repair && !any_rank(good < 0, world, parts_.stream);
  Json own;
  if (found && parts_.replicas.rank() == 0) own = {{"text", found->text}, {"odd", found->odd}};
  std::string text;
  std::vector<int> ranks;
  for (const std::string& part : gather_texts(json_text(own), world, parts_.stream)) {
    const Json json = parse_json(part);
    if (json.is_null()) continue;
    text += (text.empty() ? "" : "; ") + json.at("text").get<std::string>();
    for (const int rank : json.at("odd").get<std::vector<int>>()) ranks.push_back(rank);
  }
  text = broadcast_text(text, 0, world, parts_.stream);
  report(state, repairs ? "repair" : "stop", text, ranks);
  if (!repairs) {
    const bool unknown = any_rank(found && !found->majority, world, parts_.stream);
    throw CollectiveError(
        ErrorKind::peer,
        format("replicas differ after {}: {}{}", counted(state.step, "step"), text,
               unknown ? "; it is unknown which of them is right, since no more than half of them are equal" : ""),
        remedy_for_replicas);
  }
  if (found) repair(good);
  const std::optional<ReplicaDifference> left = find();
  if (!any_rank(left.has_value(), world, parts_.stream)) return;
  throw CollectiveError(ErrorKind::peer,
                        format("replicas differ after {}, even after their values were sent again: {}",
                               counted(state.step, "step"), text),
                        remedy_for_replicas);
}

void ReplicaComparison::repair(int good) {
  weights_.send_from(good, parts_.stream);
  if (state_) state_->send_from(good, parts_.stream);
  parts_.engine.upload();
}

void ReplicaComparison::report(const TrainingState& state, const std::string& action, const std::string& text,
                               const std::vector<int>& ranks) const {
  if (parts_.sink == nullptr) return;
  CorruptionEvent event{.step = state.step, .action = action, .ranks = ranks, .difference = text};
  for (const int rank : ranks) {
    const auto number = static_cast<std::size_t>(rank);
    event.hosts.push_back(number < parts_.hosts.size() ? parts_.hosts[number] : "");
  }
  parts_.sink->corruption(event);
  if (action != "repair") return;
  log::warning(format("replicas differ after {}: {}. Another replica has sent the values again, and the run goes on",
                      counted(state.step, "step"), text));
}

}  // namespace trainctl
