// The `transform` and `augment` lists of a config. Each item has a struct and a line in a table.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/spec/one_or_more.h"
#include "core/spec/values.h"
#include "io/loader/images/affine.h"
#include "io/loader/images/mixing.h"
#include "io/loader/images/transform.h"

namespace trainctl {

// The transforms of an input, to which each item of the lists adds its steps.
struct TransformPlan {
  std::vector<GeometryStep> fixed, augment;
  std::vector<MixStep> mixes;  // applied after all other steps
  Affine affine;               // applied to the stored values
  bool rescaled = false;
  std::int64_t sampling_rate = 0;  // of sound, in values per second; 0: unknown
};

// Measures the statistics of the training split after the transforms `so_far`.
class StatisticsSource {
 public:
  virtual ~StatisticsSource() = default;
  virtual Statistics measure(const TransformPlan& so_far) = 0;
};

struct TransformOptions : Options {
  // Appends this item to the plan; `location` is the item's location in the config, for errors.
  virtual void add(const SourceLocation& location, TransformPlan& plan, StatisticsSource& source) const = 0;
  // Whether it mixes samples and their targets.
  virtual bool mixes() const { return false; }
};

// Defined in io/loader/signals/mel_options.cpp.
Section mel_spectrogram_section();

// The table of the items of both lists.
const ChoiceTable& transform_choices();
const ChoiceTable& augment_choices();

}  // namespace trainctl
