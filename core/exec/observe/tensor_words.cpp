// Takes the parts of a tensor's name apart, and finds the parameter at a place of a flat tensor.
#include "core/exec/observe/tensor_words.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/format.h"

namespace trainctl {
namespace {

// Removes the last part of a name if it is `part`, or `part` with a number: "/gradient_2".
bool take_end(std::string_view& name, std::string_view part) {
  const std::size_t last = name.rfind('/');
  if (last == std::string_view::npos) return false;
  std::string_view end = name.substr(last + 1);
  if (!end.starts_with(part)) return false;
  end.remove_prefix(part.size());
  const bool is_numbered = end.size() > 1 && end[0] == '_' &&
                           std::all_of(end.begin() + 1, end.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!end.empty() && !is_numbered) return false;
  name = name.substr(0, last);
  return true;
}

// Whether the program has a parameter or a running statistic of this name.
bool is_weight(const Program& program, std::string_view name) {
  const auto is_named = [&](TensorId tensor) { return tensor != no_tensor && program.tensor(tensor).name == name; };
  return std::ranges::any_of(program.flat.parameters, is_named, &FlatEntry::parameter) ||
         std::ranges::any_of(program.flat.statistics, is_named, &FlatTensor::tensor);
}

std::string weight_words(std::string_view name) {
  const std::size_t last = name.rfind('/');
  if (last == std::string_view::npos) return format("the weight '{}'", name);
  return format("the weight '{}' of layer '{}'", name.substr(last + 1), name.substr(0, last));
}

// The words for a weight, or for a moving average or an optimizer's state of a weight; "" for other tensors.
std::string words_by_weight(const Program& program, std::string_view name) {
  if (is_weight(program, name)) return weight_words(name);
  const std::size_t first = name.find('/');
  if (first == std::string_view::npos || !is_weight(program, name.substr(first + 1))) return "";
  const std::string_view kind = name.substr(0, first);
  const std::string what =
      kind == "averages" ? std::string("the moving average") : format("the optimizer's state '{}'", kind);
  return format("{} of {}", what, weight_words(name.substr(first + 1)));
}

// The offset of a parameter, a gradient or a sum in the layout, in elements.
std::int64_t offset_in_layout(const ParameterLayout& flat, TensorId tensor) {
  const auto entry = std::ranges::find(flat.parameters, tensor, &FlatEntry::parameter);
  return entry != flat.parameters.end() ? entry->offset : flat.gradient_offset(tensor);
}

// The member of a bucket that holds the element; no_tensor: none.
TensorId member_at(const Program& program, TensorId bucket, std::int64_t element) {
  const std::vector<TensorId>& members = program.tensor(bucket).members;
  for (const TensorId member : members) {
    const Tensor& of = program.tensor(member);
    const std::int64_t first = of.alias_of == bucket ? of.alias_offset
                                                     : offset_in_layout(program.flat, member) -
                                                           offset_in_layout(program.flat, members.front());
    if (element >= first && element < first + of.type.shape.count()) return member;
  }
  return no_tensor;
}

// The name of what a tensor of a bucket holds of a parameter; empty if the bucket does not have the tensor.
std::string name_in(const FlatBucket& bucket, TensorId tensor, const Program& program, const FlatEntry& entry) {
  const std::string& name = program.tensor(entry.parameter).name;
  if (tensor == bucket.parameter) return name;
  if (tensor == bucket.gradient) return program.tensor(entry.gradient).name;
  if (tensor == bucket.average) return "averages/" + name;
  const auto state = std::ranges::find(bucket.states, tensor);
  if (state == bucket.states.end() || program.flat.factored) return "";
  return program.flat.state_name(entry, static_cast<std::size_t>(state - bucket.states.begin())) + "/" + name;
}

}  // namespace

std::string tensor_words(const Program& program, const std::string& name, const std::string& writer) {
  // Copies of tensors that recomputation and strategies make.
  static constexpr std::array copies = {"again",    "rest", "leaf",    "gathered", "summand", "summands", "received",
                                        "rounded",  "sum",  "share",   "columns",  "part",    "input",    "parameter",
                                        "reshaped", "rows", "counted", "before",   "scaled"};
  std::string_view rest = name;
  bool gradient = false;
  std::string words;
  for (bool is_shorter = true; is_shorter && words.empty();) {
    words = words_by_weight(program, rest);
    if (!words.empty()) break;
    is_shorter = take_end(rest, "gradient");
    gradient = gradient || is_shorter;
    for (const char* copy : copies) is_shorter = is_shorter || take_end(rest, copy);
  }
  if (words.empty() && (rest == "loss" || rest.ends_with("_loss"))) {
    words = rest == "loss" ? "the loss" : format("the loss of output '{}'", rest.substr(0, rest.size() - 5));
  }
  std::string_view layer = rest;
  if (words.empty() && take_end(layer, "output")) words = format("the output of layer '{}'", layer);
  if (words.empty() && !writer.empty()) words = format("a value of layer '{}'", writer);
  if (words.empty()) words = format("the value '{}'", name);
  return gradient ? "the gradient of " + words : words;
}

std::string name_of_element(const Program& program, TensorId tensor, std::int64_t element) {
  if (const TensorId member = member_at(program, tensor, element); member != no_tensor) {
    return program.tensor(member).name;
  }
  for (const LocalExtent& extent : program.flat.local_extents()) {
    if (element < extent.offset || element >= extent.offset + extent.count) continue;
    std::string name = name_in(program.flat.buckets[extent.bucket], tensor, program, *extent.entry);
    if (!name.empty()) return name;
  }
  return program.tensor(tensor).name;
}

}  // namespace trainctl
