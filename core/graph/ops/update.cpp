// Rules of the ops before the optimizer.
#include "core/graph/ops/update.h"

#include "core/graph/ops/attributes.h"

namespace trainctl {
namespace {

TensorType floats(Shape shape) { return {std::move(shape), DType::float32}; }

}  // namespace

std::string ZeroGradients::attributes() const { return AttributeText().value("count", count).text(); }

std::vector<TensorType> ZeroGradients::outputs(std::span<const TensorType>) const { return {floats({count})}; }

std::vector<TensorType> Agree::outputs(std::span<const TensorType>) const { return {floats({agree_flags})}; }

std::string GradientNorm::attributes() const { return AttributeText().value("elements", elements).text(); }

std::vector<TensorType> GradientNorm::outputs(std::span<const TensorType>) const { return {floats({})}; }

}  // namespace trainctl
