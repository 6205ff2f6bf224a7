// Flips a bit in a rank's memory, so that tests can check what a run does about it.
#pragma once

#include <cstdint>
#include <memory>

#include "parallel/trainer/hooks/hook.h"

namespace trainctl {

class Engine;

class BitFlip final : public TrainingHook {
 public:
  // Flips the lowest bit of the first weight and of the first value of the optimizer's state, if there is one, after
  // `step` steps. The engine must outlive the hook.
  BitFlip(std::int64_t step, Engine& engine) : step_(step), engine_(engine) {}

  std::int64_t next_pause(std::int64_t step) const override { return step < step_ ? step_ : never; }
  void on_pause(const TrainingState& state, std::int64_t before) override;

 private:
  std::int64_t step_;
  Engine& engine_;
};

// Returns the hook that the environment variable TRAINCTL_TEST_BIT_FLIP asks for, "RANK:STEP"; null on other ranks, and
// if the variable is not set.
std::unique_ptr<BitFlip> bit_flip_of(int rank, Engine& engine);

}  // namespace trainctl
