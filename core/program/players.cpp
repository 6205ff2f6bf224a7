// Finishes the programs of players with one layout, and joins them.
#include "core/program/players.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/graph/ops/training/update.h"
#include "core/optim/optimizer.h"
#include "core/program/player_network.h"

namespace trainctl {
namespace {

// Gives all programs the same layout: the parameters of each player in its backward order, then those that none trains.
void share_layout(std::vector<PlayerPass>& passes) {
  std::vector<FlatBucket> buckets;
  std::vector<std::string> states, order;
  const auto name_of = [](const PlayerPass& pass, const FlatEntry& entry) {
    return pass.program.tensor(entry.parameter).name;
  };
  for (const PlayerPass& pass : passes) {
    if (pass.number > 0) continue;
    const ParameterLayout& own = pass.program.flat;
    FlatBucket& bucket = buckets.emplace_back();
    bucket.player = pass.player->name;
    bucket.state_names = own.states;
    if (own.states.size() > states.size()) states = own.states;
    for (const FlatEntry& entry : own.parameters) {
      if (entry.gradient == no_tensor) continue;
      ++bucket.entries;
      order.push_back(name_of(pass, entry));
    }
  }
  const std::set<std::string> trained(order.begin(), order.end());
  for (const FlatEntry& entry : passes.front().program.flat.parameters) {
    if (!trained.contains(name_of(passes.front(), entry))) order.push_back(name_of(passes.front(), entry));
  }
  for (PlayerPass& pass : passes) {
    std::map<std::string, FlatEntry> entries;
    for (const FlatEntry& entry : pass.program.flat.parameters) entries[name_of(pass, entry)] = entry;
    ParameterLayout& flat = pass.program.flat;
    flat.parameters.clear();
    for (const std::string& name : order) flat.parameters.push_back(entries.at(name));
    flat.buckets = buckets;
    flat.states = states;
    flat.by_player = true;
  }
}

// Collects the tensors, segments and sums of the updates in one program.
class Joiner {
 public:
  explicit Joiner(const Network& whole) : whole_(whole) {
    joined_.layers = whole.layers;
    joined_.blocks = whole.blocks;
    joined_.warnings = whole.warnings;
    losses_.resize(whole.outputs.size(), no_tensor);
    metrics_.resize(whole.outputs.size());
    for (const ResolvedOutput& output : whole.outputs) {
      if (!output.is_added) joined_.target_encodings.push_back(output.target_encoding);
    }
    joined_.batch.targets.resize(joined_.target_encodings.size(), no_tensor);
  }

  void add(const PlayerPass& pass) {
    tensors_.clear();
    add_tensors(pass);
    const Program& own = pass.program;
    for (const ScheduleItem& item : own.schedule) {
      Segment segment = own.segment(item.segment);
      for (Op& op : segment.ops) {
        for (auto* list : {&op.inputs, &op.outputs}) *list = translated(*list);
        if (op.get_if<Agree>() != nullptr && !joined_.step.players.empty()) {
          const PlayerUpdate& before = joined_.step.players.back();
          op.def = std::make_shared<Agree>(true);
          op.inputs.insert(op.inputs.begin(), {before.agree, before.gradient_norm});
        }
      }
      joined_.schedule.push_back({static_cast<int>(joined_.segments.size()), item.micro_batch, 0});
      joined_.segments.push_back(std::move(segment));
    }
    joined_.penalties.insert(own.penalties.begin(), own.penalties.end());
    add_batch(pass);
    add_step(pass);
    add_layout(pass);
  }

  Program take(std::vector<MetricResult> results) {
    StepTensors& step = joined_.step;
    ParameterLayout& flat = joined_.flat;
    for (std::size_t i = 0; i < losses_.size(); ++i) {
      if (whole_.outputs[i].has_loss()) step.losses.push_back(losses_[i]);
    }
    for (const std::vector<TensorId>& of_output : metrics_) {
      step.metrics.insert(step.metrics.end(), of_output.begin(), of_output.end());
    }
    step.metrics.push_back(weight_);
    flat.gradient_count = flat.trainable_count + sums_;
    step.gradients = joined_.add("gradients", {flat.gradient_count}, DType::float32, Role::gradient);
    joined_.results = std::move(results);
    return std::move(joined_);
  }

 private:
  TensorId translated(TensorId id) const { return id == no_tensor ? no_tensor : tensors_[index(id)]; }
  std::vector<TensorId> translated(std::vector<TensorId> ids) const {
    for (TensorId& id : ids) id = translated(id);
    return ids;
  }

  // Whether programs share the tensor, which has the same name in each of them.
  static bool is_shared(const Tensor& tensor) {
    switch (tensor.role) {
      case Role::parameter:
      case Role::statistic:
      case Role::gradient:
      case Role::state:
      case Role::input:
        return true;
      case Role::scalar:
        return tensor.name == "step" || tensor.name == "stop_request";
      default:
        return false;
    }
  }

  // The name of a tensor in the joined program. Sums have the names that they have without players, since evaluation
  // finds them by name; only if several updates compute a sum, it is named after the later ones.
  std::string name_of(const PlayerPass& pass, const Tensor& tensor) const {
    const std::string& player = pass.player->name;
    const std::string update = pass.number == 0 ? player + "/" : format("{}/{}/", player, pass.number + 1);
    if (tensor.role == Role::gradient && !tensor.members.empty()) return player + "/" + tensor.name;
    if (is_shared(tensor) || (tensor.role == Role::reduced && !sum_names_.contains(tensor.name))) return tensor.name;
    return update + tensor.name;
  }

  void add_tensors(const PlayerPass& pass) {
    std::vector<TensorId> added;
    for (const Tensor& tensor : pass.program.tensors) {
      std::string name = name_of(pass, tensor);
      if (is_shared(tensor)) {
        const auto [known, is_new] = shared_.try_emplace(name, static_cast<TensorId>(joined_.tensors.size()));
        tensors_.push_back(known->second);
        if (!is_new) continue;
      } else {
        tensors_.push_back(static_cast<TensorId>(joined_.tensors.size()));
      }
      added.push_back(tensors_.back());
      joined_.tensors.push_back(tensor);
      joined_.tensors.back().name = std::move(name);
    }
    for (const TensorId id : added) {
      Tensor& tensor = joined_.tensors[index(id)];
      tensor.alias_of = translated(tensor.alias_of);
      tensor.members = translated(std::move(tensor.members));
      if (tensor.role == Role::reduced) sum_names_.insert(tensor.name);
    }
  }

  void add_batch(const PlayerPass& pass) {
    const BatchTensors& own = pass.program.batch;
    BatchTensors& batch = joined_.batch;
    const auto set = [this](TensorId& joined, TensorId id) {
      if (id != no_tensor) joined = translated(id);
    };
    batch.inputs.resize(own.inputs.size(), no_tensor);
    for (std::size_t i = 0; i < own.inputs.size(); ++i) set(batch.inputs[i], own.inputs[i]);
    set(batch.weights, own.weights);
    set(batch.samples, own.samples);
    joined_.micro_batch_samples = pass.program.micro_batch_samples;
    if (own.targets.empty()) return;
    for (std::size_t i = 0; i < own.targets.size(); ++i) set(batch.targets[i], own.targets[i]);
  }

  // Of several updates that compute a loss or a metric, the last one is reported.
  void add_step(const PlayerPass& pass) {
    const StepTensors& own = pass.program.step;
    StepTensors& step = joined_.step;
    step.players.push_back({translated(own.learning_rate), translated(own.updates), translated(own.agree),
                            translated(own.gradient_norm), pass.player->rate, pass.number, pass.player->steps});
    auto metric = own.metrics.begin();
    for (std::size_t k = 0; k < pass.losses.size(); ++k) {
      const ResolvedOutput& output = whole_.outputs[pass.losses[k]];
      losses_[pass.losses[k]] = translated(own.losses[k]);
      const auto count = std::ssize(output.metrics) + output.further_sums();
      if (output.is_added) continue;
      metrics_[pass.losses[k]] = translated(std::vector<TensorId>(metric, metric + count));
      metric += count;
    }
    if (step.players.size() > 1) return;
    weight_ = translated(own.metrics.back());
    step.learning_rate = translated(own.learning_rate);
    step.step = translated(own.step);
    step.updates = translated(own.updates);
    step.stop_request = translated(own.stop_request);
    step.gradient_norm = translated(own.gradient_norm);
    step.agree = translated(own.agree);
    step.count = translated(own.count);
    step.samples = translated(own.samples);
    step.parameters = translated(own.parameters);
    step.averages = translated(own.averages);
  }

  void add_layout(const PlayerPass& pass) {
    const ParameterLayout& own = pass.program.flat;
    ParameterLayout& flat = joined_.flat;
    if (flat.buckets.empty()) {
      flat = own;
      flat.reduced.clear();
      for (FlatTensor& statistic : flat.statistics) statistic.tensor = translated(statistic.tensor);
      for (FlatEntry& entry : flat.parameters) {
        entry.parameter = translated(entry.parameter);
        entry.gradient = no_tensor;
      }
    }
    for (const FlatTensor& sum : own.reduced) flat.reduced.push_back({translated(sum.tensor), sum.offset + sums_});
    sums_ += own.gradient_count - own.trainable_count;
    if (pass.number > 0) return;
    for (std::size_t i = 0; i < own.parameters.size(); ++i) {
      if (own.parameters[i].gradient == no_tensor) continue;
      flat.parameters[i] = own.parameters[i];
      flat.parameters[i].parameter = translated(own.parameters[i].parameter);
      flat.parameters[i].gradient = translated(own.parameters[i].gradient);
    }
    const FlatBucket& bucket = *own.own_bucket();
    FlatBucket& joined = flat.buckets[static_cast<std::size_t>(&bucket - own.buckets.data())];
    joined = bucket;
    joined.gradient = translated(bucket.gradient);
    joined.parameter = translated(bucket.parameter);
    joined.states = translated(bucket.states);
    joined.average = translated(bucket.average);
  }

  const Network& whole_;
  Program joined_;
  std::vector<TensorId> tensors_;           // for each tensor of the update that is added: its number in joined_
  std::map<std::string, TensorId> shared_;  // by name
  std::set<std::string> sum_names_;
  std::vector<TensorId> losses_;                // for each output of the network
  std::vector<std::vector<TensorId>> metrics_;  // for each output of the network
  TensorId weight_ = no_tensor;
  std::int64_t sums_ = 0;  // elements of the sums that were added
};

}  // namespace

ProgramSpec spec_of(const ProgramSpec& spec, const ProgramSpec::Player& player, std::size_t number) {
  ProgramSpec own = spec;
  own.players = {player};
  own.optimizer = player.optimizer;
  own.seed += number * 0x9E3779B97F4A7C15;
  return own;
}

void require_gradients(const PlayerPass& pass, const Network& whole) {
  std::set<std::string> reached;
  for (const FlatEntry& entry : pass.program.flat.parameters) {
    if (entry.gradient != no_tensor) reached.insert(pass.program.tensor(entry.parameter).name);
  }
  for (const GraphParameter& parameter : whole.graph.parameters) {
    const std::string& name = whole.graph.tensor(parameter.tensor).name;
    if (!parameter.trainable || !trains(*pass.player, name) || reached.contains(name)) continue;
    throw Error(ErrorKind::config, pass.player->location,
                format("player '{}' trains '{}', but its loss does not depend on it", pass.player->name, name),
                "leave the layer out of `trains`, or add a loss that depends on it");
  }
}

Program join_passes(std::vector<PlayerPass> passes, const ProgramSpec& spec, const Network& whole,
                    const MeshRank& rank) {
  require(!passes.empty(), "a step has no players");
  share_layout(passes);
  Joiner joiner(whole);
  for (PlayerPass& pass : passes) {
    const UpdateSpec update{pass.player->optimizer.as<OptimizerOptions>(),
                            pass.player->optimizer.location,
                            spec.clip_norm,
                            pass.statistics,
                            pass.teachers,
                            spec.moving_average,
                            pass.spectral_norms};
    pass.program = finish_training(std::move(pass.program), update, rank);
    joiner.add(pass);
  }
  Program joined = joiner.take(results_of(spec.players, whole.outputs));
  joined.name = format("train {}", joined.micro_batch_samples);
  return joined;
}

}  // namespace trainctl
