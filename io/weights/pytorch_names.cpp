// Names tensors as PyTorch does.
#include "io/weights/pytorch_names.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace trainctl {
namespace {

// Splits the name of a layer in a stack of recurrent layers, "rnn_l1" or "rnn_l1_reverse", into stack and layer:
// PyTorch names its tensors "rnn.weight_ih_l1", ... A name without a number means the first layer.
std::pair<std::string, std::string> stacked(const std::string& layer) {
  std::string_view rest = layer;
  if (rest.ends_with("_reverse")) rest.remove_suffix(std::string_view("_reverse").size());
  const std::size_t digits = rest.find_last_not_of("0123456789") + 1;
  const bool numbered = digits >= 2 && digits < rest.size() && rest.substr(digits - 2, 2) == "_l";
  return numbered ? std::pair(layer.substr(0, digits - 2), layer.substr(digits - 2)) : std::pair(layer, "_l0");
}

}  // namespace

std::string module_of(std::string layer) {
  std::replace(layer.begin(), layer.end(), '/', '.');
  return layer;
}

std::string pytorch_name(const std::string& leaf) {
  static constexpr std::pair<std::string_view, const char*> names[] = {{"kernel", "weight"},
                                                                       {"depthwise_kernel", "weight"},
                                                                       {"gamma", "weight"},
                                                                       {"scale", "weight"},
                                                                       {"embeddings", "weight"},
                                                                       {"alpha", "weight"},
                                                                       {"bias", "bias"},
                                                                       {"beta", "bias"},
                                                                       {"moving_mean", "running_mean"},
                                                                       {"moving_variance", "running_var"}};
  const auto found = std::find_if(std::begin(names), std::end(names), [&](auto& name) { return name.first == leaf; });
  return found == std::end(names) ? leaf : found->second;
}

std::string pytorch_recurrent_name(const std::string& module, std::string_view leaf) {
  const auto [stack, end] = stacked(module);
  const char* name = leaf == "kernel"             ? "weight_ih"
                     : leaf == "recurrent_kernel" ? "weight_hh"
                     : leaf == "bias"             ? "bias_ih"
                                                  : "bias_hh";
  return stack + "." + name + end;
}

PackedNames packed_names(const std::string& layer, const std::string& leaf, const std::vector<NameRule>& rules) {
  static constexpr std::string_view parts[] = {"/query", "/key", "/value"};
  for (std::int64_t i = 0; i < std::ssize(parts); ++i) {
    if (!layer.ends_with(parts[i])) continue;
    const std::string attention = module_of(renamed(layer.substr(0, layer.size() - parts[i].size()), rules));
    const std::string name = pytorch_name(leaf);
    return {{attention + ".in_proj_" + name, attention + ".qkv." + name}, {i, std::ssize(parts)}};
  }
  return {};
}

}  // namespace trainctl
