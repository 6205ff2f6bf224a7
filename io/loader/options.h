// The `data` section of a config.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/metrics/target_encoding.h"
#include "core/spec/by_name.h"
#include "io/datasets/options.h"
#include "io/loader/inputs/finite_read.h"

namespace trainctl {

// The items of `transform` and of `augment` (io/loader/images/transform_options.h).
const ChoiceTable& transform_choices();
const ChoiceTable& augment_choices();

enum class CacheKind { none, memory, disk };

// The validation split: samples of its own location, or a share of the training samples.
struct ValidationOptions : DataLocations {
  std::optional<double> split;
  bool stratify = false;

  static Keys<ValidationOptions> keys();
};

struct TestOptions : DataLocations {
  static Keys<TestOptions> keys();
};

struct DataOptions {
  ChoiceOf<dataset_choices> dataset;
  std::optional<ValidationOptions> validation;
  std::optional<TestOptions> test;
  std::optional<ByName<std::vector<std::int64_t>>> shape;  // for each input
  std::optional<ByName<std::int64_t>> classes;             // for each output
  ByName<LabelMode> label_mode;                            // for each output
  ByName<ChoicesOf<transform_choices>> transform;          // for each input
  ByName<ChoicesOf<augment_choices>> augment;
  std::optional<ChoicesOf<transform_choices>> target_transform;  // for targets that are images
  bool shuffle = true;
  CacheKind cache = CacheKind::none;
  Path cache_path;
  Auto<int> prefetch;
  Auto<int> workers;
  OnError on_error = OnError::stop;

  // Reports names in keys by input or output that the model's inputs and outputs do not have, and outputs without a
  // file in `y`. `needed`: for each output, whether it needs targets.
  void check_names_of(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                      const std::vector<bool>& needed, Reader& reader) const;

  // Whether the target is the sample itself: label_mode is `input`.
  bool target_is_input() const;

  static Keys<DataOptions> keys();
};

template <>
struct EnumNames<CacheKind> {
  static constexpr EnumName<CacheKind> names[] = {
      {CacheKind::none, "none"}, {CacheKind::memory, "memory"}, {CacheKind::disk, "disk"}};
};
template <>
struct EnumNames<OnError> {
  static constexpr EnumName<OnError> names[] = {{OnError::stop, "stop"}, {OnError::skip, "skip"}};
};

}  // namespace trainctl
