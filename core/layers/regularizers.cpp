// The options of penalties.
#include "core/layers/regularizers.h"

namespace trainctl {

Keys<RegularizerOptions> RegularizerOptions::keys() {
  return Keys<RegularizerOptions>(
             "regularizer",
             "A penalty on the size of a parameter's values w. Its gradient is that of the mean loss plus the penalty, "
             "for every optimizer; the loss that is reported is without it.")
      .key("l1", &RegularizerOptions::l1, "Adds l1 * sum |w|.", at_least(0))
      .key("l2", &RegularizerOptions::l2, "Adds l2 * sum w^2.", at_least(0));
}

Penalty penalty_of(const RegularizerChoice& choice) {
  return choice ? Penalty{static_cast<float>(choice->l1), static_cast<float>(choice->l2)} : Penalty{};
}

}  // namespace trainctl
