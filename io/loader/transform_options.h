// The `transform` and `augment` lists of a config. One struct and one line in a table each.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/spec/values.h"
#include "io/loader/transform.h"

namespace trainctl {

// A list that may be written as its only item.
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

// Mean and standard deviation of each channel, or one for all.
struct Statistics {
  std::vector<double> mean, stddev;
};

// What is built up while the lists are gone through.
struct TransformPlan {
  std::vector<GeometryStep> fixed, augment;
  Affine affine;  // of stored values
  bool rescaled = false;
};

// Measures what the fixed geometry so far leaves of the training part.
class StatisticsSource {
 public:
  virtual ~StatisticsSource() = default;
  virtual Statistics measure(const TransformPlan& so_far) = 0;
};

struct TransformOptions : Options {
  // Adds this item to the plan.
  virtual void add(const Place& place, TransformPlan& plan, StatisticsSource& source) const = 0;
};

const ChoiceTable& transform_choices();
const ChoiceTable& augment_choices();

}  // namespace trainctl
