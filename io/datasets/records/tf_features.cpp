// Reads features by name; errors name the record.
#include "io/datasets/records/tf_features.h"

#include <cmath>
#include <string_view>

#include "core/base/format.h"
#include "core/base/table.h"
#include "core/spec/reader.h"
#include "io/datasets/arrays/array.h"

namespace trainctl {
namespace {

using Kind = TfFeature::Kind;

constexpr std::int64_t max_target_values = 1 << 16;  // largest number of values of a record's target

const char* words_of(Kind kind) { return kind == Kind::integers ? "whole numbers" : "floats"; }

float read_weight(Cursor& cursor, const FeatureSpans& spans, const std::string& key, const std::string& name) {
  const TfFeature feature = read_named(cursor, spans, key, 1, name);
  if (feature.kind == Kind::bytes) data_error(name, format("feature '{}' holds bytes, but a weight is expected", key));
  const float weight = feature.kind == Kind::floats ? feature.floats[0] : static_cast<float>(feature.integers[0]);
  if (!(weight >= 0 && std::isfinite(weight))) {
    data_error(name, format("has weight {}", weight), "weights must be finite and at least 0");
  }
  return weight;
}

}  // namespace

FeatureSpans features_of(Cursor& cursor, Span record, const std::string& name) {
  FeatureSpans spans;
  const auto keep = [&](std::string_view key, Span span) { spans[std::string(key)] = span; };
  if (!for_each_feature(cursor, record, keep)) data_error(name, "is not a tf.train.Example");
  return spans;
}

TfFeature read_named(Cursor& cursor, const FeatureSpans& spans, const std::string& key, std::int64_t max_values,
                     const std::string& name) {
  const auto found = spans.find(key);
  if (found == spans.end()) data_error(name, format("has no feature '{}'", key));
  TfFeature feature;
  if (!read_feature(cursor, found->second, max_values, feature)) {
    data_error(name, format("feature '{}' is damaged, or has more than {}", key, counted(max_values, "value")));
  }
  if (feature.count() == 0) data_error(name, format("feature '{}' is empty", key));
  return feature;
}

std::string choose_feature(const std::optional<std::string>& declared, const std::vector<std::string>& usual,
                           const FeatureSpans& spans, const std::string& option, const std::string& name) {
  for (const std::string& key : declared ? std::vector{*declared} : usual) {
    if (spans.find(key) != spans.end()) return key;
  }
  std::vector<std::string> names;
  for (const auto& [key, span] : spans) {
    if (names.size() < 12) names.push_back(key.substr(0, 60));
  }
  data_error(name, format("has no feature {}", declared ? "'" + *declared + "'" : join_or(usual)),
             names.empty() ? "it has no features" : format("name one with `{}`: it has {}", option, join_or(names)));
}

void TfTargets::add(Cursor& cursor, const FeatureSpans& spans, const std::string& key,
                    const std::optional<std::string>& weight, const std::string& name) {
  const TfFeature feature = read_named(cursor, spans, key, max_target_values, name);
  if (feature.kind == Kind::bytes) {
    data_error(name, format("feature '{}' holds bytes, but the target is expected", key),
               "name a feature of whole numbers or floats with `label`");
  }
  if (each_ == 0) {
    kind_ = feature.kind;
    each_ = feature.count();
  }
  if (feature.kind != kind_ || feature.count() != each_) {
    data_error(name, format("feature '{}' has {} {}, but the records before have {} {}", key, feature.count(),
                            words_of(feature.kind), each_, words_of(kind_)));
  }
  if (weight) weights_.push_back(read_weight(cursor, spans, *weight, name));
  integers_.insert(integers_.end(), feature.integers.begin(), feature.integers.end());
  floats_.insert(floats_.end(), feature.floats.begin(), feature.floats.end());
  ++records_;
}

void TfTargets::add_without_target(Cursor& cursor, const FeatureSpans& spans, const std::optional<std::string>& weight,
                                   const std::string& name) {
  kind_ = Kind::integers;
  each_ = 1;
  if (weight) weights_.push_back(read_weight(cursor, spans, *weight, name));
  integers_.push_back(0);
  ++records_;
}

std::shared_ptr<const Dataset> TfTargets::dataset(const std::string& path, const DeclaredInfo& declared) {
  const Shape shape = each_ == 1 && kind_ == Kind::integers ? Shape{records_} : Shape{records_, each_};
  const bool whole = kind_ == Kind::integers;
  std::optional<Array> weights;
  if (!weights_.empty()) weights = {path, {records_}, ElementType::float32, false, bytes_of(std::move(weights_))};
  return array_targets({path, shape, whole ? ElementType::int64 : ElementType::float32, false,
                        whole ? bytes_of(std::move(integers_)) : bytes_of(std::move(floats_))},
                       declared, std::move(weights));
}

}  // namespace trainctl
