// The keys that all optimizers share.
#pragma once

#include "core/optim/optimizer.h"
#include "core/spec/values.h"

namespace trainctl {

template <>
struct EnumNames<DecayExclusion> {
  static constexpr EnumName<DecayExclusion> names[] = {{DecayExclusion::none, "none"},
                                                       {DecayExclusion::biases_and_norms, "biases_and_norms"}};
};

// `decay` says how weight decay enters this optimizer.
template <class T>
Keys<T> optimizer_keys(std::string name, std::string meaning, std::string decay) {
  return Keys<T>(std::move(name), std::move(meaning))
      .key("learning_rate", &T::learning_rate, "Learning rate, before the schedule.", at_least(0))
      .key("weight_decay", &T::weight_decay, std::move(decay), at_least(0))
      .key("exclude_from_weight_decay", &T::exclude_from_weight_decay, "Which parameters weight decay spares.");
}

}  // namespace trainctl
