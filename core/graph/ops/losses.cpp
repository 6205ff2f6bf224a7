// Rules of the losses' op.
#include "core/graph/ops/losses.h"

#include "core/graph/ops/attributes.h"

namespace trainctl {

std::string_view name_of(const LossRule& rule) {
  return std::visit([](const auto& r) -> std::string_view { return r.name; }, rule);
}

LossTargets targets_of(const LossRule& rule) {
  return std::visit([](const auto& r) { return r.targets; }, rule);
}

LossLink link_of(const LossRule& rule) {
  return std::visit([](const auto& r) { return r.link; }, rule);
}

std::string Loss::attributes() const {
  AttributeText text;
  std::visit([&](const auto& r) { text.rule(r); }, rule);
  return text.flag("training", training).flag("accumulate", accumulate).text();
}

std::vector<TensorType> Loss::outputs(std::span<const TensorType> inputs) const {
  require(inputs[0].shape.rank() == 2, "loss: predictions have the shape [N, K]");
  const TensorType scalar{Shape{}, DType::float32};
  std::vector<TensorType> types{scalar, scalar};
  if (training) types.push_back(inputs[0]);
  return types;
}

}  // namespace trainctl
