// Loss choices of the config, and what they become: a loss op that takes logits.
#pragma once

#include "core/graph/ops/losses.h"
#include "core/layers/model.h"
#include "core/spec/keys.h"

namespace trainctl {

// Whether the network's output is logits, or probabilities out of a softmax or sigmoid. `automatic` looks at the
// network.
enum class FromLogits { automatic, yes, no };

// Options that all losses share; the others are those of the rule (core/graph/ops/losses/).
struct LossOptions : Options {
  FromLogits from_logits = FromLogits::automatic;  // of losses that are linked by a softmax or sigmoid

  virtual LossRule rule() const = 0;
};

// A choice for each rule: sparse_categorical_crossentropy, mean_squared_error, ...
const ChoiceTable& loss_choices();

// A loss, resolved against the network that it is put behind.
struct ResolvedLoss {
  LossRule rule;
  // What stands at the end of the network and is left out in training, since the op takes logits
  // (BuildOptions::logits); it turns the op's input into the network's output for people: predictions, mean absolute
  // error.
  FinalActivation folded = FinalActivation::none;
  Place place;
};

// Reports: from_logits: false behind a network that ends in no probabilities, or in the wrong ones for the loss.
ResolvedLoss resolve_loss(const Choice& choice, FinalActivation network, Reader& reader);

// The mean loss of a network that knows nothing yet, with an output [n, K]: the logarithm of the number of outcomes; 0
// where nothing can be said.
double chance_loss(const LossRule& loss, const Shape& output);

}  // namespace trainctl
