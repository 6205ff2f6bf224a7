// Formats the tables and the JSON document of a plan.
#include "parallel/plan/report.h"

#include <algorithm>

#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/table.h"
#include "core/compile/memory_fit.h"
#include "parallel/plan/alternatives.h"
#include "parallel/trainer/batch_sizes.h"
#include "parallel/trainer/recompute_choice.h"

namespace trainctl {
namespace {

using Align = TextTable::Align;

// The number of alternatives in the text.
constexpr std::size_t max_shown = 12;

std::string percent(double share, double whole) { return whole > 0 ? format("{:.1f} %", 100 * share / whole) : "-"; }

std::string memory_text(const Plan& plan) {
  const PlannedStage& stage = plan.prediction.largest();
  TextTable memory({{plan.prediction.stages.size() > 1 ? "memory of the rank that needs most" : "memory of a rank"},
                    {"bytes", Align::right},
                    {""}});
  const auto add = [&](std::string_view name, std::int64_t bytes, bool exact) {
    memory.add({std::string(name), (exact ? "" : "about ") + grouped(bytes), byte_text(bytes)});
  };
  for (const MemoryLine& line : stage.lines) {
    if (line.bytes > 0) add(line.name, line.bytes, plan.target.exact || !line.depends_on_kernels);
  }
  add(stage.memory.on_host ? "total" : "total on the device", stage.memory.total(), plan.target.exact);
  std::string text = memory.text();
  if (plan.target.memory > 0) {
    text += format("{} {} that a rank may use\n", plan.prediction.fits(plan.target) ? "of" : "MORE THAN THE",
                   byte_text(plan.target.memory));
  }
  if (plan.shared_memory > 0) text += format("{}: {}\n", shared_memory_line, byte_text(plan.shared_memory));
  return text;
}

// Returns notes on the strategy: recomputed blocks, unequal shares and averages.
std::string strategy_notes(const Plan& plan) {
  const Prediction& prediction = plan.prediction;
  const StrategyOptions& options = prediction.strategy.options;
  std::string text;
  if (plan.automatic) text += "`strategy: auto` chose this\n";
  if (!prediction.strategy.recomputed.empty()) text += recomputed_text(prediction.strategy.recomputed);
  if (prediction.mesh().data == 1) return text;
  if (options.shares_by_measuring()) {
    text += "replicas' shares of a batch are measured when training begins; here they are assumed to be equal\n";
  } else if (!prediction.sizes.speeds.empty()) {
    const MeshRank& rank = prediction.stages.front().programs.rank();
    text += format(
        "replica {} has most of a batch, {}: the step's time is that of this replica, on ranks of equal "
        "speed\n",
        rank.along(MeshAxis::data), counted(batch_cut(prediction.sizes, rank).samples, "sample"));
  }
  if (options.sync_every.value > 1) {
    text += format("replicas are averaged every {}, which takes {}: this time is divided among the steps\n",
                   counted(options.sync_every.value, "step"), seconds_text(prediction.averaging));
  }
  return text;
}

std::string step_text(const Plan& plan) {
  const Prediction& prediction = plan.prediction;
  const double whole = prediction.step.seconds;
  const StepSeconds phases = prediction.step.phases();
  TextTable step({{"a step"}, {"time", Align::right}, {"share", Align::right}});
  const auto add = [&](std::string_view name, double seconds) {
    step.add({std::string(name), seconds_text(seconds), percent(seconds, whole)});
  };
  add("compute", phases.compute);
  add("exposed communication", phases.communication);
  if (prediction.mesh().pipeline > 1) add("bubble", phases.bubble);
  add("waiting for data", phases.data);
  if (phases.host > 0) add("host", phases.host);
  add("total", whole);
  std::string text = step.text();
  if (prediction.mesh().pipeline > 1) {
    text += format("the bubble of {} equal stages and {} micro-batches is {}\n", prediction.mesh().pipeline,
                   prediction.micro_batches(), percent(prediction.ideal_bubble(), 1));
  }
  return text;
}

std::string recovery_text(const Plan& plan) {
  if (!plan.recovery) return "";
  const Recovery& recovery = *plan.recovery;
  std::string text = format("after a rank has failed, the ranks start again in {}", seconds_text(recovery.start));
  if (recovery.reading > 0) text += format(" and have read the checkpoint {} later", seconds_text(recovery.reading));
  text += format("; a rank that does not answer is noticed after {}\n", seconds_text(recovery.detection));
  if (recovery.again > 0) {
    text += format("{} of training are done again; failures, one in {}, take {} of the time\n",
                   long_time_text(recovery.again), long_time_text(recovery.failures), percent(recovery.share(), 1));
  }
  return text;
}

std::string summary_text(const Plan& plan) {
  const Prediction& prediction = plan.prediction;
  std::string text = format("{} samples/s; a rank sends {} in a step\n",
                            grouped(static_cast<long long>(prediction.samples_per_second())),
                            byte_text(static_cast<std::int64_t>(prediction.bytes_sent())));
  if (plan.data_at_hand && plan.length.steps > 0) {
    text += format("{} {} {}, without evaluation\n", counted(plan.length.steps, "step"),
                   plan.length.steps == 1 ? "takes" : "take", long_time_text(plan.length.seconds));
  } else if (!plan.data_at_hand) {
    text += "the data is missing, so that the number of steps of an epoch is unknown\n";
  }
  text += format("a checkpoint holds {}", byte_text(prediction.checkpoint_bytes));
  if (plan.target.storage > 0) {
    text +=
        format(", written in {}", seconds_text(static_cast<double>(prediction.checkpoint_bytes) / plan.target.storage));
  }
  if (plan.saves) {
    text += format("\ncheckpoint.every: auto saves about every {} ({}), if a save stops training for {}",
                   long_time_text(plan.saves->seconds), counted(plan.saves->steps, "step"),
                   seconds_text(plan.saves->stall));
  }
  return text + "\n" + recovery_text(plan);
}

std::string alternatives_text(const Plan& plan) {
  if (plan.alternatives.empty()) return "";
  TextTable table({{"alternatives: data x pipeline x tensor"},
                   {"shard"},
                   {"micro-batches", Align::right},
                   {"memory", Align::right},
                   {"step", Align::right},
                   {"samples/s", Align::right},
                   {""}});
  for (std::size_t i = 0; i < std::min(plan.alternatives.size(), max_shown); ++i) {
    const Alternative& a = plan.alternatives[i];
    table.add({format("{} x {} x {}", a.mesh.data, a.mesh.pipeline, a.mesh.tensor),
               std::string(name_of(a.options.shard)), std::to_string(a.micro_batches), byte_text(a.memory),
               seconds_text(a.step_seconds), grouped(static_cast<long long>(a.samples_per_second)),
               a.fits ? "" : "does not fit"});
  }
  std::string text = "\n" + table.text();
  if (plan.alternatives.size() > max_shown) {
    text += format("and {} more, which --json lists\n", plan.alternatives.size() - max_shown);
  }
  return text;
}

// Returns the sections of the config that the alternative would replace.
std::string yaml_of(const Plan& plan, const Alternative& alternative) {
  const std::string strategy = strategy_yaml(alternative.options);
  if (alternative.gradient_accumulation == plan.gradient_accumulation) return strategy;
  const std::string train = format("train:\n  gradient_accumulation: {}\n", alternative.gradient_accumulation);
  return strategy == strategy_yaml(plan.prediction.strategy.options) ? train : train + strategy;
}

Json phases_json(const StepSeconds& phases) {
  return {{"compute", phases.compute},
          {"communication", phases.communication},
          {"bubble", phases.bubble},
          {"data", phases.data},
          {"host", phases.host}};
}

Json mesh_json(const Mesh& mesh) { return {{"data", mesh.data}, {"pipeline", mesh.pipeline}, {"tensor", mesh.tensor}}; }

Json recovery_json(const std::optional<Recovery>& recovery) {
  if (!recovery) return {};
  return {{"detection_seconds", recovery->detection},       {"start_seconds", recovery->start},
          {"reading_seconds", recovery->reading},           {"again_seconds", recovery->again},
          {"seconds_between_failures", recovery->failures}, {"share", recovery->share()}};
}

}  // namespace

bool is_preferred(const Alternative& a, const Alternative& b) {
  return a.fits != b.fits ? a.fits : a.fits ? a.step_seconds < b.step_seconds : a.memory < b.memory;
}

void rank_alternatives(Plan& plan) {
  std::ranges::stable_sort(plan.alternatives, is_preferred);
  if (plan.alternatives.empty()) return;
  const Alternative& best = plan.alternatives.front();
  const bool fits = plan.prediction.fits(plan.target);
  const double gain = plan.prediction.step.seconds / best.step_seconds - 1;
  if (!fits && best.fits) {
    plan.advice = format("it does not fit; this does, with {} a rank and {} a step", byte_text(best.memory),
                         seconds_text(best.step_seconds));
    plan.yaml = yaml_of(plan, best);
  } else if (fits && best.fits && gain > 0.01) {
    plan.advice = format("{:.0f} % more samples a second, with {} a rank", 100 * gain, byte_text(best.memory));
    plan.yaml = yaml_of(plan, best);
  } else if (!fits) {
    const bool halves = plan.compute == DType::float32;
    plan.advice = format("none of these strategies fits: {}use a smaller batch_size or more ranks",
                         halves ? "halve the activations as below, " : "");
    plan.yaml = halves ? "train:\n  precision: bfloat16\n" : "";
  }
}

std::string to_json(const Plan& plan) {
  const Prediction& prediction = plan.prediction;
  Json memory;
  for (const MemoryLine& line : prediction.largest().lines) memory[std::string(line.name)] = line.bytes;
  memory["total"] = prediction.memory();
  Json stages = Json::array();
  for (std::size_t s = 0; s < prediction.stages.size(); ++s) {
    stages.push_back({{"memory_bytes", prediction.stages[s].memory.total()},
                      {"communication_bytes", prediction.step.bytes_sent[s]},
                      {"parts", phases_json(prediction.step.stages[s])}});
  }
  Json alternatives = Json::array();
  for (const Alternative& a : plan.alternatives) {
    alternatives.push_back({{"mesh", mesh_json(a.mesh)},
                            {"shard", name_of(a.options.shard)},
                            {"micro_batches", a.micro_batches},
                            {"memory_bytes", a.memory},
                            {"fits", a.fits},
                            {"step_seconds", a.step_seconds},
                            {"samples_per_second", a.samples_per_second},
                            {"yaml", yaml_of(plan, a)}});
  }
  Json json = {
      {"ranks", prediction.mesh().ranks()},
      {"ranks_per_node", plan.target.nodes.ranks_per_node},
      {"machine", plan.target.about},
      {"mesh", mesh_json(prediction.mesh())},
      {"micro_batches", prediction.micro_batches()},
      {"batch", prediction.sizes.training},
      {"step_seconds", prediction.step.seconds},
      {"parts", phases_json(prediction.step.phases())},
      {"samples_per_second", prediction.samples_per_second()},
      {"memory_bytes", memory},
      {"shared_memory_bytes", plan.shared_memory},
      {"memory_exact", plan.target.exact},
      {"memory_limit", plan.target.memory},
      {"fits", prediction.fits(plan.target)},
      {"communication_bytes", prediction.bytes_sent()},
      {"stages", stages},
      {"data_at_hand", plan.data_at_hand},
      {"steps", plan.length.steps},
      {"training_seconds", plan.length.seconds},
      {"checkpoint_bytes", prediction.checkpoint_bytes},
      {"checkpoint_seconds",
       plan.target.storage > 0 ? Json(static_cast<double>(prediction.checkpoint_bytes) / plan.target.storage) : Json()},
      {"checkpoint_interval_seconds", plan.saves ? Json(plan.saves->seconds) : Json()},
      {"recovery", recovery_json(plan.recovery)},
      {"simulated_events", prediction.step.events},
      {"alternatives", alternatives},
      {"advice", plan.advice},
      {"yaml", plan.yaml}};
  if (!prediction.strategy.recomputed.empty()) json["recomputed"] = prediction.strategy.recomputed;
  return json_line(json);
}

std::string to_text(const Plan& plan) {
  const Prediction& prediction = plan.prediction;
  const int ranks = prediction.mesh().ranks(), per_node = plan.target.nodes.ranks_per_node;
  std::string text = format("{} on {} of {}", plan.name, counted(ranks, "rank"), plan.target.about);
  if (ranks > per_node) text += format(", {} on a node", per_node);
  text += format("\n{}, {} a step{}, {}\n", describe(prediction.strategy.options, prediction.mesh()),
                 counted(prediction.sizes.training, "sample"),
                 prediction.micro_batches() > 1 ? format(" in {} micro-batches", prediction.micro_batches()) : "",
                 name_of(plan.compute));
  text += strategy_notes(plan) + "\n" + memory_text(plan) + "\n" + step_text(plan) + "\n" + summary_text(plan) +
          alternatives_text(plan);
  if (!plan.advice.empty()) text += format("\n{}:\n\n{}", plan.advice, plan.yaml);
  return text;
}

}  // namespace trainctl
