// The losses of the config, and their resolution to a loss op that reads logits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/graph/ops/losses/losses.h"
#include "core/layers/model/model.h"
#include "core/metrics/choices.h"
#include "core/spec/keys.h"

namespace trainctl {

// Whether the network's output is logits, or probabilities from a softmax or sigmoid. `automatic` decides by the
// network's last activation.
enum class FromLogits { automatic, yes, no };

struct OutputExpression;

// The options that all losses share. A loss adds the options of its rule (core/graph/ops/losses/).
struct LossOptions : Options {
  FromLogits from_logits = FromLogits::automatic;  // for losses that apply a softmax or sigmoid
  std::optional<std::int64_t> ignore_index;        // for losses on class numbers

  virtual LossRule rule() const = 0;
  // Whether there is a loss; false for `none`, whose rule is not used.
  virtual bool trains() const { return true; }
  // The expression of the loss; null if it is not an expression.
  virtual std::shared_ptr<const OutputExpression> expression() const { return nullptr; }
};

// A loss, resolved against the network's output.
struct ResolvedLoss {
  LossRule rule;
  // The activation at the end of the network that is left out in training because the loss op reads logits
  // (BuildOptions::logits). Applied to the op's input, it returns the predictions that users and some metrics need.
  FinalActivation folded = FinalActivation::none;
  SourceLocation location;
  // Targets with this number count neither in the loss nor in the metrics of the output.
  std::optional<std::int32_t> ignore_index = {};
  std::shared_ptr<const OutputExpression> expression = {};  // of a loss that is an expression
  bool is_none = false;                                     // the output has no loss, targets and metrics
};

// Resolves a loss for a network that ends in `network`. Reports an error if `from_logits: false` is set for a network
// without a final softmax or sigmoid, or if the network ends in a final activation that does not fit the loss.
ResolvedLoss resolve_loss(const Choice& choice, FinalActivation network, Reader& reader);

// Returns the same loss for targets that are probabilities instead of class numbers; a loss without class numbers is
// returned unchanged.
LossRule of_probabilities(const LossRule& rule);

// The expected mean loss before any training, for an output [n, K]: the logarithm of the number of outcomes; 0 if it is
// unknown.
double chance_loss(const LossRule& loss, const Shape& output);

}  // namespace trainctl
