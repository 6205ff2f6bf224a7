// The options of penalties.
#include "core/layers/regularizers.h"

namespace trainctl {

Keys<RegularizerOptions> RegularizerOptions::keys() {
  return Keys<RegularizerOptions>(
             "regularizer",
             "A penalty on the size of a parameter's values. Its gradient is that of the mean loss plus the penalty, "
             "for every optimizer. The loss that is reported is without it, where Keras' has it: each epoch reports "
             "the sum of all penalties as regularization_loss, of the weights at its end.")
      .key("l1", &RegularizerOptions::l1, "Adds l1 times the sum of absolute values.", at_least(0))
      .key("l2", &RegularizerOptions::l2, "Adds l2 times the sum of squares.", at_least(0));
}

Penalty penalty_of(const RegularizerChoice& choice) {
  return choice ? Penalty{static_cast<float>(choice->l1), static_cast<float>(choice->l2)} : Penalty{};
}

}  // namespace trainctl
