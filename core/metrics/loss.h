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

// The type of a micro-batch's targets: int32 [n] where the loss is sparse, else float32 like the output [n, K].
TensorType target_type(LossKind loss, const Shape& output);

// Checks that the network's output [n, K] fits the loss and the data. `classes` is the data set's number of classes, 0
// where its targets are values or nothing is known; `target` the shape of one sample's target where it is values.
void check_output(const ResolvedLoss& loss, const Shape& output, std::int64_t classes, const Shape& target,
                  Reader& reader);

}  // namespace trainctl
