// A loss of values inside the network, which is added to the losses of its outputs: Keras' add_loss().
#pragma once

#include <string>

#include "core/layers/model/reference.h"
#include "core/spec/keys.h"
#include "core/spec/one_or_more.h"

namespace trainctl {

// The mean over the samples of an expression of layers' outputs and of the targets (core/layers/expression).
struct AddedLoss {
  OneOrMore<Reference> from;
  OneOrMore<std::string> inputs{{"x"}};  // the names of the values of `from` in the expression, in its order
  Reference targets;  // the output whose targets are y_true in the expression; without a name: the only output
  Located<std::string> expression;
  double weight = 1;
  bool whole_batch = false;  // whether the samples of the batch depend on each other

  static Keys<AddedLoss> keys();

  // Whether the expression uses y_true.
  bool reads_targets() const;
};

}  // namespace trainctl
