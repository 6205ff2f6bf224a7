// Mixing a sample with another one of the training split: mixup (Zhang et al., 2018) and cutmix (Yun et al., 2019).
//
// The partner, the share and the rectangle depend only on the seed, the epoch and the sample, and the partner is
// augmented as in the epoch: the results are the same on any number of ranks and threads, and after a resume.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "io/loader/images/augmentation.h"

namespace trainctl {

// An item of `augment` that mixes samples.
struct MixStep {
  enum class Kind { mixup, cutmix };
  Kind kind = Kind::mixup;
  double alpha = 1;  // shares are drawn from Beta(alpha, alpha)
  SourceLocation location;
};

// Draws a number from Beta(alpha, alpha), alpha > 0.
double draw_share(double alpha, Draws& draws);

class Mixing {
 public:
  // The partner of a sample, and how both are mixed. cutmix replaces a rectangle of the sample, which may be empty, by
  // the partner's.
  struct Mix {
    std::int64_t partner = 0;  // the partner's number in the split
    double share = 1;          // weight of the sample itself; the partner's weight is 1 - share
    MixStep::Kind kind = MixStep::Kind::mixup;
    std::int64_t top = 0, bottom = 0, left = 0, right = 0;  // pixels [top, bottom) x [left, right)
  };

  // For each sample, one of the steps is chosen with equal probability. `position`, from which the random numbers are
  // drawn, is the position of the mixing among the augmentations. Throws Error{config} if a step cannot be applied to
  // samples of this shape or with this number of classes (0: values).
  Mixing(std::vector<MixStep> steps, std::uint32_t position, const Shape& sample, std::int64_t classes);

  Mix draw(const RandomKey& key, std::uint64_t sample, std::int64_t samples_of_split) const;
  // Mixes the partner's values into the sample's; `dtype` is their type in batches.
  void apply(const Mix& mix, DType dtype, std::byte* sample, const std::byte* partner) const;

 private:
  std::vector<MixStep> steps_;
  std::uint32_t position_;
  Shape sample_;
};

// Whether bytes stay bytes after these steps.
bool keeps_bytes(const std::vector<MixStep>& steps);

// Sets to = share * to + (1 - share) * from, element by element.
void blend(double share, std::int64_t count, float* to, const float* from);

}  // namespace trainctl
