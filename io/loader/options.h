// The `data` section of a config.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/metrics/targets.h"
#include "core/spec/values.h"
#include "io/datasets/options.h"
#include "io/loader/part.h"
#include "io/loader/transform_options.h"

namespace trainctl {

enum class CacheKind { none, memory };

// A part that is held out from training: samples of its own, or a share of the training part.
struct ValidationOptions : DataLocation {
  std::optional<double> split;
  bool stratify = false;

  static Keys<ValidationOptions> keys();
};

struct TestOptions : DataLocation {
  static Keys<TestOptions> keys();
};

struct DataOptions {
  ChoiceOf<dataset_choices> dataset;
  std::optional<ValidationOptions> validation;
  std::optional<TestOptions> test;
  std::optional<std::vector<std::int64_t>> shape;
  std::optional<std::int64_t> classes;
  LabelMode label_mode = LabelMode::integer;
  ChoicesOf<transform_choices> transform;
  ChoicesOf<augment_choices> augment;
  bool shuffle = true;
  CacheKind cache = CacheKind::none;
  int prefetch = 2;
  Auto<int> workers;
  OnError on_error = OnError::stop;

  static Keys<DataOptions> keys();
};

template <>
struct EnumNames<CacheKind> {
  static constexpr EnumName<CacheKind> names[] = {{CacheKind::none, "none"}, {CacheKind::memory, "memory"}};
};
template <>
struct EnumNames<OnError> {
  static constexpr EnumName<OnError> names[] = {{OnError::stop, "stop"}, {OnError::skip, "skip"}};
};

}  // namespace trainctl
