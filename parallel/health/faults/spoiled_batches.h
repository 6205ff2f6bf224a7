// A source of batches, one of which gives a loss that is NaN.
#pragma once

#include <vector>

#include "core/exec/interfaces/forwarded_source.h"

namespace trainctl {

class SpoiledBatches final : public ForwardedSource {
 public:
  // `source` must outlive the object.
  explicit SpoiledBatches(BatchSource& source) : ForwardedSource(source) {}

  // The weights of the samples of the next batch are NaN.
  void spoil_next() { spoils_ = true; }

  const Batch& next() override;

 private:
  bool spoils_ = false;
  Batch batch_;                 // a spoiled batch
  std::vector<float> weights_;  // its weights
};

}  // namespace trainctl
