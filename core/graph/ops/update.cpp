// Rules of the ops of reduction and update.
#include "core/graph/ops/update.h"

#include <algorithm>
#include <functional>

#include "core/graph/ops/attributes.h"

namespace trainctl {
namespace {

TensorType floats(Shape shape) { return {std::move(shape), DType::float32}; }

// The part of a region that the ranges reach, `regions` times; then the copies.
std::vector<TensorType> written(const OptimizerUpdate& update, std::size_t regions) {
  std::int64_t end = 0;
  for (const UpdateRange& range : update.ranges) end = std::max(end, range.offset + range.count);
  std::vector<TensorType> types(regions, floats({end}));
  for (const UpdateCopy& copy : update.copies) types.push_back({copy.shape, copy.layout.dtype});
  return types;
}

AttributeText describe(const OptimizerUpdate& update) {
  AttributeText text;
  if (update.clip_norm != 0) text.value("clip_norm", update.clip_norm);
  if (update.weight_decay != 0) text.value("weight_decay", update.weight_decay);
  for (const UpdateRange& range : update.ranges) {
    text.word(format("[{},{}){}", range.offset, range.offset + range.count, range.decay ? "" : " no decay"));
  }
  if (!update.copies.empty()) text.value("copies", update.copies.size());
  return text;
}

}  // namespace

std::string AllReduce::attributes() const {
  return AttributeText().value("bucket", bucket).word(format("[{},{})", offset, offset + count)).text();
}

std::vector<TensorType> AllReduce::outputs(std::span<const TensorType> inputs) const { return {inputs[0]}; }

std::string WaitBucket::attributes() const { return AttributeText().value("bucket", bucket).text(); }

std::vector<TensorType> WaitBucket::outputs(std::span<const TensorType> inputs) const { return {inputs[0]}; }

std::string ZeroGradients::attributes() const { return AttributeText().value("count", count).text(); }

std::vector<TensorType> ZeroGradients::outputs(std::span<const TensorType>) const { return {floats({count})}; }

std::vector<TensorType> Agree::outputs(std::span<const TensorType>) const { return {floats({agree_flags})}; }

std::string GradientNorm::attributes() const { return AttributeText().value("elements", elements).text(); }

std::vector<TensorType> GradientNorm::outputs(std::span<const TensorType>) const { return {floats({})}; }

std::string SgdUpdate::attributes() const {
  AttributeText text;
  if (momentum != 0) text.value("momentum", momentum);
  return text.flag("nesterov", nesterov).word(describe(*this).text()).text();
}

std::vector<TensorType> SgdUpdate::outputs(std::span<const TensorType>) const {
  return written(*this, momentum > 0 ? 2 : 1);
}

std::string AdamUpdate::attributes() const {
  AttributeText text;
  text.value("beta_1", beta_1).value("beta_2", beta_2).value("epsilon", epsilon).flag("decoupled", decoupled);
  return text.word(describe(*this).text()).text();
}

std::vector<TensorType> AdamUpdate::outputs(std::span<const TensorType>) const { return written(*this, 3); }

// The momentum of all, or of each where they differ.
std::string UpdateStatistics::attributes() const {
  AttributeText text;
  const bool equal = std::adjacent_find(momenta.begin(), momenta.end(), std::not_equal_to<>()) == momenta.end();
  for (std::size_t i = 0; i < (equal ? 1 : momenta.size()); ++i) text.value("momentum", momenta[i]);
  return text.text();
}

std::vector<TensorType> UpdateStatistics::outputs(std::span<const TensorType> inputs) const {
  return {inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(momenta.size())};
}

}  // namespace trainctl
