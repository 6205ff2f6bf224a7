// Loss choices of the config, and what they become: a loss op that takes logits.
#pragma once

#include "core/graph/ops/losses.h"
#include "core/layers/model.h"
#include "core/spec/keys.h"

namespace trainctl {

// Whether the network's output is logits, or probabilities out of a softmax or sigmoid. `automatic` looks at the
// network.
enum class FromLogits { automatic, yes, no };

struct LossOptions : Options {
  virtual LossKind kind() const = 0;
  virtual FromLogits logits() const { return FromLogits::yes; }
  virtual double smoothing() const { return 0; }
};

// sparse_categorical_crossentropy, categorical_crossentropy, binary_crossentropy, mean_squared_error.
const ChoiceTable& loss_choices();

// A loss, resolved against the network that it is put behind.
struct ResolvedLoss {
  LossKind kind = LossKind::mean_squared_error;
  float label_smoothing = 0;
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
double chance_loss(LossKind loss, const Shape& output);

}  // namespace trainctl
