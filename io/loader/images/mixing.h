// Mixing a sample with another one of the training split: mixup (Zhang et al., 2018) and cutmix (Yun et al., 2019).
//
// The partner, the share and the rectangle are a function of the seed, the epoch and the sample, and the partner is
// mixed in as the epoch augments it: the same on any number of ranks and threads, and after a resume.
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
  double alpha = 1;  // of the Beta(alpha, alpha) that shares are drawn from
  SourceLocation location;
};

// A number from Beta(alpha, alpha), alpha > 0.
double draw_share(double alpha, Draws& draws);

class Mixing {
 public:
  // What a sample is mixed with. Of cutmix the partner's rectangle, which may be empty, takes the sample's place.
  struct Mix {
    std::int64_t partner = 0;  // its number in the split
    double share = 1;          // of the sample itself; the rest is the partner's
    MixStep::Kind kind = MixStep::Kind::mixup;
    std::int64_t top = 0, bottom = 0, left = 0, right = 0;  // pixels [top, bottom) x [left, right)
  };

  // Of several steps each sample takes one, all equally often. `position`: of its random numbers among augmentations.
  // Throws Error{config} where a step cannot be applied to samples of this shape, or of these classes (0: values).
  Mixing(std::vector<MixStep> steps, std::uint32_t position, const Shape& sample, std::int64_t classes);

  Mix draw(const RandomKey& key, std::uint64_t sample, std::int64_t samples_of_split) const;
  // Mixes the partner's values into the sample's, which have the type that the loader gives.
  void apply(const Mix& mix, DType dtype, std::byte* sample, const std::byte* partner) const;

 private:
  std::vector<MixStep> steps_;
  std::uint32_t position_;
  Shape sample_;
};

// Whether bytes can stay bytes.
bool keeps_bytes(const std::vector<MixStep>& steps);

// share * to + (1 - share) * from, element by element.
void blend(double share, std::int64_t count, float* to, const float* from);

}  // namespace trainctl
