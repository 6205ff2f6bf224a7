// Faults of numbers: a loss that is not finite, and a flipped bit.
#include "core/base/format.h"
#include "parallel/health/faults/fault.h"
#include "parallel/health/faults/table.h"

namespace trainctl {
namespace {

struct NanFault final : RankFault {
  static Keys<NanFault> keys() {
    return Keys<NanFault>("nan", "Makes the loss of a replica NaN in the next step.")
        .required("rank", &NanFault::rank, "A rank of the replica.", at_least(0))
        .required("step", &NanFault::step, fault_step_meaning, at_least(1));
  }
  std::string text() const override { return format("the next loss of rank {} is NaN", rank); }
  void act(FaultScene& scene) const override { scene.spoil_next_batch(rank); }
};

struct CorruptFault final : RankFault {
  static Keys<CorruptFault> keys() {
    return Keys<CorruptFault>("corrupt", "Flips one bit of a parameter of a rank, as faulty memory does.")
        .required("rank", &CorruptFault::rank, fault_rank_meaning, at_least(0))
        .required("step", &CorruptFault::step, fault_step_meaning, at_least(1));
  }
  std::string text() const override { return format("a bit of a parameter flips on rank {}", rank); }
  void act(FaultScene& scene) const override {
    if (scene.rank() == rank) scene.flip_bit();
  }
};

}  // namespace

Section nan_section() { return NanFault::keys(); }
Section corrupt_section() { return CorruptFault::keys(); }

}  // namespace trainctl
