// The search for the first tensor that holds a NaN or Inf.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "core/exec/engine.h"

namespace trainctl {

// Searches a step op by op: set it with Engine::set_observer and repeat the step.
class NotFiniteSearch final : public OpObserver {
 public:
  NotFiniteSearch(Engine& engine, int program) : engine_(engine), program_(program) {}

  void ran(const PlacedProgram& program, int segment, int op, double start_seconds, double end_seconds) override;
  // The name of the tensor and of the op that wrote it; "" where all values are finite.
  const std::string& found() const { return found_; }
  // The op's position in the program, by which ranks compare their findings; infinite where all values are finite.
  double place() const { return place_; }

 private:
  Engine& engine_;
  int program_;
  std::vector<std::byte> bytes_;
  std::string found_;
  double place_ = std::numeric_limits<double>::infinity();
};

}  // namespace trainctl
