// Stochastic gradient descent: keys and update.
#include "core/optim/sgd.h"

#include "core/optim/optimizer_keys.h"

namespace trainctl {

std::vector<std::string> SgdOptions::states() const {
  if (momentum == 0) return {};
  return {"momentum"};
}

std::shared_ptr<const OptimizerUpdate> SgdOptions::update(std::vector<UpdateRange> ranges, double clip_norm) const {
  auto update = std::make_shared<SgdUpdate>();
  fill(*update, std::move(ranges), clip_norm);
  update->momentum = static_cast<float>(momentum);
  update->nesterov = nesterov && momentum != 0;
  return update;
}

Keys<SgdOptions> SgdOptions::keys() {
  return optimizer_keys<SgdOptions>("sgd", "Stochastic gradient descent: v = momentum v + g, w -= learning_rate v.",
                                    "L2 penalty: weight_decay w is added to the gradient.")
      .key("momentum", &SgdOptions::momentum, "Share of the last step's velocity that is kept.", from_zero_to_below(1))
      .key("nesterov", &SgdOptions::nesterov, "Nesterov's variant: w -= learning_rate (g + momentum v).");
}

}  // namespace trainctl
