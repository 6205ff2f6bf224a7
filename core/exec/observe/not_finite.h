// The search for the first tensor that holds a NaN or Inf.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "core/exec/engine.h"

namespace trainctl {

// Watches a run op by op; give it to Engine::set_observer and run the step again.
class NotFiniteSearch final : public OpObserver {
 public:
  NotFiniteSearch(Engine& engine, int program) : engine_(engine), program_(program) {}

  void ran(const PlacedProgram& program, int segment, int op, double start_seconds, double end_seconds) override;
  // The tensor and the op that wrote it, "" where all is finite.
  const std::string& found() const { return found_; }
  // How early that op stands in the program, to compare ranks by; infinite where all is finite.
  double place() const { return place_; }

 private:
  Engine& engine_;
  int program_;
  std::vector<std::byte> bytes_;
  std::string found_;
  double place_ = std::numeric_limits<double>::infinity();
};

}  // namespace trainctl
