// Adam and AdamW.
#pragma once

#include "core/optim/optimizer.h"

namespace trainctl {

// Kingma and Ba (2015), with bias correction; weight decay is an L2 penalty.
struct AdamOptions : OptimizerOptions {
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;

  std::vector<std::string> states() const final { return {"m", "v"}; }
  std::shared_ptr<const OptimizerUpdate> update(std::vector<UpdateRange> ranges, double clip_norm) const final;

  static Keys<AdamOptions> keys();

 protected:
  virtual bool decoupled() const { return false; }
};

// Loshchilov and Hutter (2019): weight decay is decoupled from the gradient.
struct AdamWOptions final : AdamOptions {
  AdamWOptions() { weight_decay = 0.004; }

  static Keys<AdamWOptions> keys();

 protected:
  bool decoupled() const override { return true; }
};

}  // namespace trainctl
