// Flips a bit on the device.
#include "parallel/trainer/hooks/bit_flip.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/exec/engine.h"
#include "parallel/trainer/loop/training_state.h"

namespace trainctl {

void BitFlip::on_pause(const TrainingState& state, std::int64_t before) {
  if (before >= step_ || state.step < step_) return;
  engine_.download();
  for (const auto* tensors : {&engine_.weights(), &engine_.state()}) {
    if (tensors->empty() || tensors->front().view.count == 0) continue;
    std::uint32_t bits = 0;
    std::memcpy(&bits, tensors->front().view.data, sizeof(bits));
    bits ^= 1;
    std::memcpy(tensors->front().view.data, &bits, sizeof(bits));
  }
  engine_.upload();
}

std::unique_ptr<BitFlip> bit_flip_of(int rank, Engine& engine) {
  const char* const text = std::getenv("TRAINCTL_TEST_BIT_FLIP");
  int flipped = 0;
  long long step = 0;
  if (text == nullptr || std::sscanf(text, "%d:%lld", &flipped, &step) != 2 || flipped != rank) return nullptr;
  return std::make_unique<BitFlip>(step, engine);
}

}  // namespace trainctl
