// The `transform` and `augment` lists of a config: one struct and one line in a table for each item.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/spec/values.h"
#include "io/loader/mixing.h"
#include "io/loader/transform.h"

namespace trainctl {

// A list whose only item may be written without brackets.
template <class T>
struct OneOrMore {
  std::vector<T> items;
};

template <class T>
struct Value<OneOrMore<T>> {
  static TypeInfo type() {
    TypeInfo info = Value<std::vector<T>>::type();
    info.single_item_allowed = true;
    return info;
  }
  static bool read(const Node& node, Reader& reader, OneOrMore<T>& value) {
    if (!node.is_scalar()) return Value<std::vector<T>>::read(node, reader, value.items);
    value.items.resize(1);
    return Value<T>::read(node, reader, value.items[0]);
  }
  static Node write(const OneOrMore<T>& value) {
    if (value.items.empty()) return {};
    return value.items.size() == 1 ? Value<T>::write(value.items[0]) : Value<std::vector<T>>::write(value.items);
  }
};

// Mean and standard deviation by channel; lists of one element apply to all channels.
struct Statistics {
  std::vector<double> mean, stddev;
};

// The transforms of an input, built up item by item.
struct TransformPlan {
  std::vector<GeometryStep> fixed, augment;
  std::vector<MixStep> mixes;  // behind all others
  Affine affine;               // of the stored values
  bool rescaled = false;
};

// Measures the training part's statistics behind the transforms so far.
class StatisticsSource {
 public:
  virtual ~StatisticsSource() = default;
  virtual Statistics measure(const TransformPlan& so_far) = 0;
};

struct TransformOptions : Options {
  // Appends this item to the plan; `place` is its config line, for errors.
  virtual void add(const Place& place, TransformPlan& plan, StatisticsSource& source) const = 0;
  // Whether it mixes samples, and with them their targets.
  virtual bool mixes() const { return false; }
};

const ChoiceTable& transform_choices();
const ChoiceTable& augment_choices();

}  // namespace trainctl
