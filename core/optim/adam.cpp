// Adam and AdamW: keys and update.
#include "core/optim/adam.h"

#include "core/optim/optimizer_keys.h"

namespace trainctl {
namespace {

template <class T>
Keys<T> adam_keys(const char* name, const char* meaning, const char* decay) {
  return optimizer_keys<T>(name, meaning, decay)
      .key("beta_1", &T::beta_1, "Decay of the average of gradients.", from_zero_to_below(1))
      .key("beta_2", &T::beta_2, "Decay of the average of squared gradients.", from_zero_to_below(1))
      .key("epsilon", &T::epsilon,
           "Added to the root of the second average, behind its bias correction: as in PyTorch. Keras adds it before "
           "the "
           "correction, where the same number weighs more in the first steps.",
           more_than(0));
}

}  // namespace

std::shared_ptr<const OptimizerUpdate> AdamOptions::update(std::vector<UpdateRange> ranges, double clip_norm) const {
  auto update = std::make_shared<AdamUpdate>();
  fill(*update, std::move(ranges), clip_norm);
  update->beta_1 = static_cast<float>(beta_1);
  update->beta_2 = static_cast<float>(beta_2);
  update->epsilon = static_cast<float>(epsilon);
  update->decoupled = decoupled();
  return update;
}

Keys<AdamOptions> AdamOptions::keys() {
  return adam_keys<AdamOptions>("adam", "Adam (Kingma and Ba, 2015), with bias correction.",
                                "L2 penalty: weight_decay w is added to the gradient.");
}

Keys<AdamWOptions> AdamWOptions::keys() {
  return adam_keys<AdamWOptions>("adamw", "Adam with decoupled weight decay (Loshchilov and Hutter, 2019).",
                                 "Decoupled decay: w -= learning_rate weight_decay w beside Adam's step.");
}

}  // namespace trainctl
