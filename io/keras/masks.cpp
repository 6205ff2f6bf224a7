// Compares the tensors from which masks are computed with the padded inputs of layers.
#include "io/keras/masks.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "core/base/json.h"
#include "io/keras/network.h"
#include "io/weights/keras_layers.h"

namespace trainctl {
namespace {

using Numbers = std::set<std::size_t>;

// The tensors whose values are compared with the padding; empty if the mask is computed in another way.
Numbers sources_of_mask(std::size_t mask, const std::vector<LayerUse>& uses) {
  static constexpr std::string_view joins[] = {"Any", "LogicalOr", "LogicalAnd", "ConvertToTensor"};
  Numbers visited, sources;
  std::vector<std::size_t> waiting{mask};
  while (!waiting.empty()) {
    const std::size_t number = waiting.back();
    waiting.pop_back();
    if (!visited.insert(number).second) continue;
    const LayerUse& use = uses[number];
    const std::string kind = use.layer != nullptr ? layer_class(*use.layer) : "";
    const bool compares = kind == "NotEqual";
    if (!compares && std::find(std::begin(joins), std::end(joins), kind) == std::end(joins)) return {};
    if (compares) {
      sources.insert(use.from.begin(), use.from.end());
    } else {
      waiting.insert(waiting.end(), use.from.begin(), use.from.end());
    }
  }
  return sources;
}

// The inputs of all embeddings with masks and of all masking layers on which these uses depend.
Numbers padded_inputs(std::vector<std::size_t> waiting, const std::vector<LayerUse>& uses) {
  Numbers visited, padded;
  while (!waiting.empty()) {
    const std::size_t number = waiting.back();
    waiting.pop_back();
    const LayerUse& use = uses[number];
    if (!visited.insert(number).second || use.layer == nullptr) continue;
    const bool pads = layer_class(*use.layer) == "Masking" || use.layer->at("config").value("mask_zero", false);
    if (pads) padded.insert(use.from.begin(), use.from.end());
    waiting.insert(waiting.end(), use.from.begin(), use.from.end());
  }
  return padded;
}

}  // namespace

bool are_of_padding(const std::vector<std::size_t>& masks, const std::vector<std::size_t>& inputs,
                    const std::vector<LayerUse>& uses) {
  if (masks.empty()) return true;
  const Numbers padded = padded_inputs(inputs, uses);
  return std::all_of(masks.begin(), masks.end(), [&](std::size_t mask) {
    const Numbers sources = sources_of_mask(mask, uses);
    return !sources.empty() && std::includes(padded.begin(), padded.end(), sources.begin(), sources.end());
  });
}

}  // namespace trainctl
