// The keys of penalties on parameters.
#include "core/layers/regularizers.h"

namespace trainctl {

Keys<RegularizerOptions> RegularizerOptions::keys() {
  return Keys<RegularizerOptions>(
             "regularizer",
             "A penalty on the size of a parameter's values. Every optimizer uses the gradient of the mean "
             "loss plus the penalty. Unlike Keras' loss, the reported loss does not include the penalty: each epoch "
             "reports the sum of all penalties, computed from the weights at its end, as regularization_loss.")
      .key("l1", &RegularizerOptions::l1, "Adds l1 times the sum of absolute values.", at_least(0))
      .key("l2", &RegularizerOptions::l2, "Adds l2 times the sum of squares.", at_least(0));
}

Penalty penalty_of(const RegularizerChoice& choice) {
  return choice ? Penalty{static_cast<float>(choice->l1), static_cast<float>(choice->l2)} : Penalty{};
}

}  // namespace trainctl
