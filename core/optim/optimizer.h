// What an optimizer is: options that become an update op, and the names of the states that the op keeps.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/graph/ops/update.h"
#include "core/spec/keys.h"

namespace trainctl {

// What weight decay leaves alone. Biases and the parameters of normalisation are those whose GraphParameter::decay is
// false.
enum class DecayExclusion { none, biases_and_norms };

// Options that all optimizers share. Each optimizer is one file beside this one.
struct OptimizerOptions : Options {
  double learning_rate = 0.001;
  double weight_decay = 0;
  DecayExclusion exclude_from_weight_decay = DecayExclusion::none;

  // Names of the states, each a flat region with the parameters' offsets: "momentum", or "m" and "v".
  virtual std::vector<std::string> states() const = 0;
  // The op that updates all parameters. `ranges` cover the trainable part of the flat layout; `clip_norm` 0: no
  // clipping.
  virtual std::shared_ptr<const OptimizerUpdate> update(std::vector<UpdateRange> ranges, double clip_norm) const = 0;
  // Whether decay applies to a parameter that is no bias and no norm (`plain`), or is one.
  bool decays(bool plain) const { return plain || exclude_from_weight_decay == DecayExclusion::none; }

 protected:
  // Fills what OptimizerUpdate has for all optimizers.
  void fill(OptimizerUpdate& update, std::vector<UpdateRange> ranges, double clip_norm) const;
};

// sgd, adam, adamw.
const ChoiceTable& optimizer_choices();

}  // namespace trainctl
