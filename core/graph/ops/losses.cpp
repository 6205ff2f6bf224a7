// Rules of losses.
#include "core/graph/ops/losses.h"

#include "core/graph/ops/attributes.h"

namespace trainctl {
namespace {

TensorType scalar() { return {Shape{}, DType::float32}; }

}  // namespace

std::string_view name_of(LossKind kind) {
  switch (kind) {
    case LossKind::sparse_categorical_crossentropy:
      return "sparse_categorical_crossentropy";
    case LossKind::categorical_crossentropy:
      return "categorical_crossentropy";
    case LossKind::binary_crossentropy:
      return "binary_crossentropy";
    case LossKind::mean_squared_error:
      return "mean_squared_error";
  }
  return "?";
}

std::string Loss::attributes() const {
  AttributeText text;
  text.word(name_of(loss));
  if (label_smoothing != 0) text.value("label_smoothing", label_smoothing);
  return text.flag("training", training).flag("accumulate", accumulate).text();
}

std::vector<TensorType> Loss::outputs(std::span<const TensorType> inputs) const {
  require(inputs[0].shape.rank() == 2, "loss: predictions have the shape [N, K]");
  std::vector<TensorType> types{scalar(), scalar()};
  if (training) types.push_back(inputs[0]);
  return types;
}

}  // namespace trainctl
