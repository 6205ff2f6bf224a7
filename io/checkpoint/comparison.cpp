// Compares two checkpoints and prints the result as text and JSON.
#include "io/checkpoint/comparison.h"

#include <algorithm>
#include <set>

#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/table.h"

namespace trainctl {
namespace {

std::span<const float> values_of(const NamedTensor& tensor) {
  return {tensor.view.as<float>(), static_cast<std::size_t>(tensor.view.count)};
}

void compare(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b, SnapshotContent content,
             std::vector<ComparedTensor>& compared) {
  const auto of_a = by_name(a), of_b = by_name(b);
  std::set<std::string_view> names;
  for (const auto* tensors : {&of_a, &of_b}) {
    for (const auto& [name, tensor] : *tensors) names.insert(name);
  }
  for (const std::string_view name : names) {
    ComparedTensor one{content, std::string(name), {}, {}};
    const auto in_a = of_a.find(name), in_b = of_b.find(name);
    if (in_a != of_a.end()) one.a = in_a->second->shape;
    if (in_b != of_b.end()) one.b = in_b->second->shape;
    if (one.a && one.a == one.b) one.difference = difference(values_of(*in_a->second), values_of(*in_b->second));
    compared.push_back(std::move(one));
  }
}

const char* name_of(SnapshotContent content) { return content == SnapshotContent::weights ? "weights" : "state"; }

Json to_json(const ComparedTensor& tensor) {
  Json json{{"name", tensor.name},
            {"content", name_of(tensor.content)},
            {"shape", (tensor.a ? tensor.a : tensor.b)->sizes()},
            {"equal", tensor.equal()}};
  if (!tensor.a || !tensor.b) {
    json["only_in"] = tensor.a ? "a" : "b";
  } else if (!tensor.difference) {
    json["other_shape"] = tensor.b->sizes();
  } else {
    json["elements"] = tensor.difference->elements;
    json["differing"] = tensor.difference->differing;
    json["largest_absolute"] = json_number(tensor.difference->largest_absolute);
    json["largest_relative"] = json_number(tensor.difference->largest_relative);
  }
  return json;
}

std::string metadata_value(const LoadedCheckpoint& checkpoint, const std::string& name) {
  const auto found = checkpoint.snapshot.metadata.find(name);
  return found == checkpoint.snapshot.metadata.end() ? "" : found->second;
}

// Returns the lines that tell whether the runs computed with the same kernels; empty if a checkpoint has no hash of its
// kernels.
std::string to_text(const ComparedKernels& kernels) {
  if (kernels.a.empty() || kernels.b.empty()) return "";
  if (kernels.a == kernels.b) return format("kernels: equal, hash {}\n", kernels.a);
  std::string text = format("kernels: hash {} in A, {} in B\n", kernels.a, kernels.b);
  for (const ChangedChoice& choice : kernels.changed) {
    text += format("  {}: {} in A, {} in B\n", choice.key, choice.before, choice.now);
  }
  return text;
}

}  // namespace

bool CheckpointComparison::equal() const {
  return std::all_of(tensors.begin(), tensors.end(), [](const ComparedTensor& tensor) { return tensor.equal(); });
}

CheckpointComparison compare(const LoadedCheckpoint& a, const LoadedCheckpoint& b) {
  CheckpointComparison comparison{a.path, b.path, a.snapshot.step, b.snapshot.step, {}};
  comparison.kernels = {metadata_value(a, "kernel_hash"), metadata_value(b, "kernel_hash"),
                        changed_choices(metadata_value(a, "kernel_choices"), metadata_value(b, "kernel_choices"))};
  compare(a.snapshot.weights, b.snapshot.weights, SnapshotContent::weights, comparison.tensors);
  compare(a.snapshot.state, b.snapshot.state, SnapshotContent::state, comparison.tensors);
  return comparison;
}

Json to_json(const CheckpointComparison& comparison) {
  Json json{{"ok", comparison.equal()},
            {"a", {{"path", comparison.a}, {"step", comparison.a_step}, {"kernels", comparison.kernels.a}}},
            {"b", {{"path", comparison.b}, {"step", comparison.b_step}, {"kernels", comparison.kernels.b}}},
            {"changed_kernels", Json::array()},
            {"tensors", Json::array()}};
  for (const ChangedChoice& choice : comparison.kernels.changed) {
    json["changed_kernels"].push_back({{"kernel", choice.key}, {"a", choice.before}, {"b", choice.now}});
  }
  for (const ComparedTensor& tensor : comparison.tensors) json["tensors"].push_back(to_json(tensor));
  return json;
}

std::string to_text(const CheckpointComparison& comparison) {
  using Align = TextTable::Align;
  TextTable table({{"tensor"},
                   {"shape", Align::right},
                   {"differing", Align::right},
                   {"largest absolute", Align::right},
                   {"largest relative", Align::right}});
  std::size_t unequal = 0;
  for (const ComparedTensor& tensor : comparison.tensors) {
    unequal += tensor.equal() ? 0 : 1;
    const std::string shape = to_string(*(tensor.a ? tensor.a : tensor.b));
    if (!tensor.a || !tensor.b) {
      table.add({tensor.name, shape, tensor.a ? "only in A" : "only in B", "", ""});
    } else if (!tensor.difference) {
      table.add({tensor.name, shape, format("{} in B", to_string(*tensor.b)), "", ""});
    } else if (tensor.equal()) {
      table.add({tensor.name, shape, "equal", "", ""});
    } else {
      table.add({tensor.name, shape, format("{} of {}", tensor.difference->differing, tensor.difference->elements),
                 format("{:.4g}", tensor.difference->largest_absolute),
                 format("{:.4g}", tensor.difference->largest_relative)});
    }
  }
  std::string text =
      format("A  {} (step {})\nB  {} (step {})\n", comparison.a, comparison.a_step, comparison.b, comparison.b_step);
  text += to_text(comparison.kernels) + "\n";
  text += table.text();
  text += unequal == 0 ? format("\nall {} are equal\n", counted(comparison.tensors.size(), "tensor"))
                       : format("\n{} of {} differ\n", grouped(unequal), counted(comparison.tensors.size(), "tensor"));
  return text;
}

}  // namespace trainctl
