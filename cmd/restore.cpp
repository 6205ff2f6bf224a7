// From a checkpoint into engines.
#include "cmd/restore.h"

#include <cstring>
#include <map>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "core/spec/units.h"
#include "parallel/comm/text.h"
#include "parallel/trainer/training_plan.h"

namespace trainctl {
namespace {

// What differs between the tensors of a checkpoint and those of the model, a few of them.
std::string differences(const std::vector<NamedTensor>& stored, const std::vector<NamedTensor>& wanted) {
  std::map<std::string, Shape> there;
  for (const NamedTensor& tensor : stored) there[tensor.name] = tensor.shape;
  std::string text;
  int count = 0;
  const auto add = [&](const std::string& line) {
    if (++count <= 4) text += (text.empty() ? "" : ", ") + line;
  };
  for (const NamedTensor& tensor : wanted) {
    const auto found = there.find(tensor.name);
    if (found == there.end()) {
      add(format("'{}' is missing", tensor.name));
    } else {
      if (found->second != tensor.shape) {
        add(format("'{}' is {}, not {}", tensor.name, to_string(found->second), to_string(tensor.shape)));
      }
      there.erase(found);
    }
  }
  for (const auto& [name, shape] : there) add(format("'{}' is not in the model", name));
  if (count > 4) text += format(" and {} more", count - 4);
  return text;
}

void copy_by_name(const std::vector<NamedTensor>& from, const std::vector<NamedTensor>& to) {
  std::map<std::string, const NamedTensor*> stored;
  for (const NamedTensor& tensor : from) stored[tensor.name] = &tensor;
  for (const NamedTensor& tensor : to) {
    std::memcpy(tensor.view.data, stored.at(tensor.name)->view.data, static_cast<std::size_t>(tensor.view.bytes()));
  }
}

}  // namespace

void restore(const LoadedCheckpoint& checkpoint, const std::vector<NamedTensor>& weights,
             const std::vector<NamedTensor>& state, const std::string& config_file) {
  if (const std::string differ = differences(checkpoint.snapshot.weights, weights); !differ.empty()) {
    throw Error(ErrorKind::config,
                format("{} is a checkpoint of another model than {}'s: {}", checkpoint.path, config_file, differ),
                "use the config that it was made with, another checkpoint, or train anew (run --resume never)");
  }
  copy_by_name(checkpoint.snapshot.weights, weights);
  if (state.empty()) return;
  if (const std::string differ = differences(checkpoint.snapshot.state, state); !differ.empty()) {
    log::warning(checkpoint.snapshot.state.empty()
                     ? format("{} holds weights only: the optimizer's state begins anew", checkpoint.path)
                     : format("{} has another optimizer's state ({}): it begins anew", checkpoint.path, differ));
    return;
  }
  copy_by_name(checkpoint.snapshot.state, state);
}

std::optional<Snapshot> broadcast_position(const std::optional<Snapshot>& mine, Communicator& world, Stream& stream) {
  std::string text;
  if (mine) {
    Json json = {{"step", mine->step},
                 {"seed", mine->position.seed},
                 {"epoch", mine->position.epoch},
                 {"offset", mine->position.offset},
                 {"facts", mine->facts},
                 {"metrics", json_numbers(mine->metrics)}};
    if (mine->best) {
      json["best"] = {{"monitor", mine->best->monitor},
                      {"maximum", mine->best->maximum},
                      {"value", mine->best->value},
                      {"step", mine->best->step}};
    }
    text = json.dump();
  }
  text = broadcast_text(text, 0, world, stream);
  if (text.empty()) return std::nullopt;
  const Json json = Json::parse(text);
  Snapshot snapshot;
  snapshot.step = json.at("step");
  snapshot.position = {json.at("seed"), json.at("epoch"), json.at("offset")};
  snapshot.facts = json.at("facts").get<std::map<std::string, std::string>>();
  for (const auto& [name, value] : json.at("metrics").items()) snapshot.metrics[name] = number_of(value);
  if (const auto best = json.find("best"); best != json.end()) {
    snapshot.best = {best->at("monitor"), best->at("maximum"), best->at("value"), best->at("step")};
  }
  return snapshot;
}

void broadcast_tensors(const Engine& engine, Communicator& world, Stream& stream) {
  for (const auto* tensors : {&engine.weights(), &engine.state()}) {
    for (const NamedTensor& tensor : *tensors) world.broadcast(tensor.view, 0, stream);
  }
  stream.synchronize();
}

std::string fact(const std::optional<Snapshot>& snapshot, const std::string& name) {
  if (!snapshot) return "";
  const auto found = snapshot->facts.find(name);
  return found == snapshot->facts.end() ? "" : found->second;
}

RunSpec with_global_batch(RunSpec spec, int ranks, const std::optional<Snapshot>& resumed) {
  std::int64_t batch = spec.train.global_batch(ranks);
  const std::string before = fact(resumed, "batch_size");
  if (spec.train.batch_size_per_rank && !before.empty()) {
    const std::int64_t kept = parse_integer(before).value_or(0);
    if (kept < 1)
      throw CollectiveError(ErrorKind::data, "the checkpoint is damaged: its batch has " + before + " samples");
    if (kept != batch) {
      log::info(format("the batch stays {} samples, as when the run began: {} for each rank would make it {} now", kept,
                       *spec.train.batch_size_per_rank, batch));
    }
    batch = kept;
  }
  spec.train.batch_size = batch;
  spec.train.batch_size_per_rank.reset();
  return spec;
}

void log_resume(const RunSpec& spec, const TrainingPlan& plan, const Snapshot& resumed, const std::string& path) {
  log::info(format("goes on from {} (step {}, epoch {:.2f})", path, resumed.step,
                   static_cast<double>(resumed.step) / static_cast<double>(plan.steps_per_epoch)));
  const auto differs = [&](const std::string& name) {
    const std::string before = fact(resumed, name);
    return !before.empty() && before != plan.facts.at(name);
  };
  if (differs("data"))
    log::warning("the data has changed since the checkpoint: samples may be seen twice or not at all");
  if (differs("device")) {
    log::warning(format("the checkpoint is from {}; this is {}: the same bits are not to be expected",
                        fact(resumed, "device"), plan.facts.at("device")));
  }
  const std::int64_t total = parse_integer(fact(resumed, "total_steps")).value_or(0);
  if (total <= 0 || plan.total_steps <= 0) return;
  const double before = scheduled_rate(spec.train, {resumed.step, plan.steps_per_epoch, total});
  const double now = plan.learning_rate(resumed.step);
  if (before != now) {
    log::warning(
        format("the schedule follows the length of the run, now {} steps instead of {}: the learning rate goes "
               "on with {:.3g} in place of {:.3g}",
               plan.total_steps, total, now, before));
  }
}

}  // namespace trainctl
