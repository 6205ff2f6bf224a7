// Repeats two runs that differ, and compares the traces, gradients and weights of the step after which they differ.
#include "run/scaling/scaling_difference.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/exec/observe/trace_difference.h"
#include "io/checkpoint/comparison.h"
#include "io/checkpoint/load.h"
#include "run/scaling/scaling_runs.h"

namespace trainctl {
namespace {

std::vector<TraceRecord> trace_of(const ScaledRun& run) {
  return parse_trace(read_file(run.directory + "/" + trace_file, std::numeric_limits<std::int64_t>::max()));
}

// Of the tensors that differ, the one whose gradient the step computed first; null if none differs.
const ComparedTensor* earliest(const CheckpointComparison& comparison, const std::vector<TraceRecord>& trace) {
  const auto position = [&trace](const ComparedTensor& tensor) {
    double earliest = std::numeric_limits<double>::infinity();
    for (const TraceRecord& record : trace) {
      if (record.tensor == tensor.name + "/gradient") earliest = std::min(earliest, record.position);
    }
    return earliest;
  };
  const ComparedTensor* found = nullptr;
  for (const ComparedTensor& tensor : comparison.tensors) {
    if (tensor.equal() || (found != nullptr && position(*found) <= position(tensor))) continue;
    found = &tensor;
  }
  return found;
}

void set(ScalingDifference& found, const char* phase, const char* op, const std::string& tensor,
         const ComparedTensor& compared) {
  found.phase = phase;
  found.op = op;
  found.tensor = tensor;
  if (compared.difference) found.difference = *compared.difference;
}

}  // namespace

ScalingDifference find_difference(ScalingRuns& runs, const ScaledRun& a, const ScaledRun& b, std::int64_t step) {
  ScalingDifference found{a.ranks, b.ranks, step, "", "", "", {}, 0, {}, ""};
  const ScaledRun again_a = runs.run(a.ranks, {step, true, ""}), again_b = runs.run(b.ranks, {step, true, ""});
  for (const auto& [first, again] : {std::pair(&a, &again_a), std::pair(&b, &again_b)}) {
    if (first->steps.at(step) == again->steps.at(step)) continue;
    found.note =
        format("a second run on {} differs from the first one: the run is not deterministic", ranks_text(first->ranks));
    return found;
  }
  const std::vector<TraceRecord> trace_a = trace_of(again_a), trace_b = trace_of(again_b);
  const TraceComparison traced = compare(trace_a, trace_b);
  found.note = format("tensors that ops wrote before it: {} are equal for the same samples", traced.equal);
  if (traced.incomparable > 0) {
    found.note += format(", {} come from different samples on each rank and cannot be compared", traced.incomparable);
  }
  if (traced.first) {
    found.phase = traced.first->segment;
    found.op = traced.first->op;
    found.tensor = traced.first->tensor;
    found.samples = traced.first->samples;
    found.compared = traced.first->compared;
    const ScalingRequest with_values{step, true, found.tensor};
    const ScaledRun values_a = runs.run(a.ranks, with_values), values_b = runs.run(b.ranks, with_values);
    found.difference = difference_of(*traced.first, trace_of(values_a), trace_of(values_b));
    return found;
  }
  const auto load = [](const std::string& directory) { return load_named_checkpoint(directory); };
  const std::string gradients = std::string("/") + gradients_folder;
  const CheckpointComparison reduced =
      compare(load(again_a.directory + gradients), load(again_b.directory + gradients));
  if (const ComparedTensor* gradient = earliest(reduced, trace_a)) {
    set(found, "reduction", "sum of gradients", gradient->name + "/gradient", *gradient);
    return found;
  }
  const CheckpointComparison ends = compare(load(again_a.directory), load(again_b.directory));
  if (const ComparedTensor* tensor = earliest(ends, trace_a)) set(found, "update", "update", tensor->name, *tensor);
  return found;
}

std::string ScalingDifference::text() const {
  std::string text = format("first difference: step {} on {} and {}", step, ranks_text(ranks), ranks_text(other_ranks));
  if (!phase.empty()) {
    text += format("\n  tensor  {}\n  op      {} ({})\n  by      {}", tensor, op, phase, to_string(difference));
    if (!samples.empty() && compared >= samples.size()) {
      text += format("\n  of      {} of {} samples, the first is sample {} of the data", samples.size(), compared,
                     samples.front());
    }
  }
  return text + "\n  " + note + "\n";
}

Json to_json(const ScalingDifference& found) {
  return {{"ranks", {found.ranks, found.other_ranks}},
          {"step", found.step},
          {"phase", found.phase},
          {"op", found.op},
          {"tensor", found.tensor},
          {"samples", found.samples},
          {"elements", found.difference.elements},
          {"differing", found.difference.differing},
          {"largest_absolute", json_number(found.difference.largest_absolute)},
          {"largest_relative", json_number(found.difference.largest_relative)},
          {"note", found.note}};
}

}  // namespace trainctl
