// Rules of losses and metrics.
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

std::string_view name_of(MetricKind kind) {
  switch (kind) {
    case MetricKind::sparse_categorical_accuracy:
      return "sparse_categorical_accuracy";
    case MetricKind::categorical_accuracy:
      return "categorical_accuracy";
    case MetricKind::binary_accuracy:
      return "binary_accuracy";
    case MetricKind::top_k_categorical_accuracy:
      return "top_k_categorical_accuracy";
    case MetricKind::mean_absolute_error:
      return "mean_absolute_error";
  }
  return "?";
}

std::string Metric::attributes() const {
  AttributeText text;
  text.word(name_of(metric));
  if (metric == MetricKind::top_k_categorical_accuracy) text.value("k", k);
  return text.flag("accumulate", accumulate).text();
}

std::vector<TensorType> Metric::outputs(std::span<const TensorType>) const { return {scalar()}; }

}  // namespace trainctl
