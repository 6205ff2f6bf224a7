// Rules of the ops that move values.
#include "core/graph/ops/shaping.h"

#include "core/graph/graph.h"
#include "core/graph/ops/attributes.h"

namespace trainctl {

std::vector<TensorType> Concatenate::outputs(std::span<const TensorType> inputs) const {
  TensorType sum = inputs[0];
  std::int64_t& last = sum.shape[sum.shape.rank() - 1];
  for (const TensorType& input : inputs.subspan(1)) {
    last = checked_add(last, input.shape.back());
    TensorType expected = sum;
    expected.shape[sum.shape.rank() - 1] = input.shape.back();
    require(input == expected, "concatenate: inputs differ in more than the last dimension");
  }
  return {sum};
}

void Concatenate::differentiate(const Op& op, Differentiator& differentiator) const {
  std::vector<std::int64_t> sizes;
  for (TensorId input : op.inputs) sizes.push_back(differentiator.tensor(input).type.shape.back());
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  const auto parts = differentiator.emit(std::make_shared<Split>(std::move(sizes)), {dy}, op);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (differentiator.wants(op.inputs[i])) differentiator.contribute(op.inputs[i], parts[i]);
  }
}

std::string Split::attributes() const {
  std::string text;
  for (std::int64_t size : sizes) text += (text.empty() ? "" : ",") + std::to_string(size);
  return "sizes=" + text;
}

std::vector<TensorType> Split::outputs(std::span<const TensorType> inputs) const {
  std::vector<TensorType> types;
  std::int64_t sum = 0;
  for (std::int64_t size : sizes) {
    types.push_back(inputs[0]);
    types.back().shape[inputs[0].shape.rank() - 1] = size;
    sum += size;
  }
  require(sum == inputs[0].shape.back(), "split: the sizes do not add up to the last dimension");
  return types;
}

std::string Reshape::attributes() const { return to_string(shape); }

std::vector<TensorType> Reshape::outputs(std::span<const TensorType> inputs) const {
  require(inputs[0].shape.count() == shape.count(), "reshape: another number of elements");
  return {{shape, inputs[0].dtype}};
}

void Reshape::differentiate(const Op& op, Differentiator& differentiator) const {
  const Shape& before = differentiator.tensor(op.inputs[0]).type.shape;
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  differentiator.contribute(op.inputs[0], differentiator.emit(std::make_shared<Reshape>(before), {dy}, op)[0]);
}

std::string Reorder::attributes() const {
  AttributeText text;
  return text.value("to", name_of(to.dtype)).word(to.format).text();
}

std::vector<TensorType> Reorder::outputs(std::span<const TensorType> inputs) const {
  return {{inputs[0].shape, to.dtype}};
}

std::string Cast::attributes() const { return AttributeText().value("to", name_of(to)).text(); }

std::vector<TensorType> Cast::outputs(std::span<const TensorType> inputs) const { return {{inputs[0].shape, to}}; }

void Cast::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  const auto from = differentiator.tensor(op.inputs[0]).type.dtype;
  differentiator.contribute(op.inputs[0], differentiator.emit(std::make_shared<Cast>(from), {dy}, op)[0]);
}

}  // namespace trainctl
