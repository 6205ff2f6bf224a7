// The `transform` and `augment` lists of a config: one struct and one line in a table for each item.
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

// The transforms of an input, built up item by item.
struct TransformPlan {
  std::vector<GeometryStep> fixed, augment;
  std::vector<MixStep> mixes;  // behind all others
  Affine affine;               // of the stored values
  bool rescaled = false;
};

// Measures the statistics of the training split after the transforms that come before.
class StatisticsSource {
 public:
  virtual ~StatisticsSource() = default;
  virtual Statistics measure(const TransformPlan& so_far) = 0;
};

struct TransformOptions : Options {
  // Appends this item to the plan; `place` is its config line, for errors.
  virtual void add(const SourceLocation& location, TransformPlan& plan, StatisticsSource& source) const = 0;
  // Whether it mixes samples, and with them their targets.
  virtual bool mixes() const { return false; }
};

const ChoiceTable& transform_choices();
const ChoiceTable& augment_choices();

}  // namespace trainctl
