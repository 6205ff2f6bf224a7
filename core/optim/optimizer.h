// What a config says of an optimizer, and the update op that it becomes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/graph/ops/optimizers.h"
#include "core/spec/keys.h"

namespace trainctl {

// What weight decay leaves alone. Biases and the parameters of normalisation are those whose GraphParameter::decay is
// false.
enum class DecayExclusion { none, biases_and_norms };

// Options that all optimizers share; the others are those of the rule (core/graph/ops/optimizers/).
struct OptimizerOptions : Options {
  double learning_rate = 0;
  double weight_decay = 0;
  DecayExclusion exclude_from_weight_decay = DecayExclusion::none;

  virtual OptimizerRule rule() const = 0;
  // Whether its step needs norms over each parameter.
  bool by_parameter() const;
  // The op that updates all parameters. `ranges` cover the trainable part of the flat layout; `clip_norm` 0: no
  // clipping.
  std::shared_ptr<const OptimizerUpdate> update(std::vector<UpdateRange> ranges, double clip_norm) const;
  // Whether decay applies to a parameter that is no bias and no norm (`plain`), or is one.
  bool decays(bool plain) const { return plain || exclude_from_weight_decay == DecayExclusion::none; }
};

// A choice for each rule: sgd, adam, ...
const ChoiceTable& optimizer_choices();

}  // namespace trainctl
