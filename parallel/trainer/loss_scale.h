// The factor on the loss that keeps float16 gradients within their range (Micikevicius et al., 2018): halved after a
// step whose gradient overflowed, doubled after many that did not. The update of a step that overflowed is left out,
// and the optimizer does not count that step.
#pragma once

#include <cstdint>
#include <string>

namespace trainctl {

class LossScale {
 public:
  LossScale() = default;
  // From what text() gave.
  explicit LossScale(const std::string& text);

  double value() const { return value_; }
  // Whether a step with this value did not overflow.
  bool is_proven() const { return finite_steps_ > 0; }
  // How many steps have overflowed since the optimizer's state began.
  std::int64_t left_out() const { return left_out_; }
  // The optimizer's state begins anew.
  void begin_state() { left_out_ = 0; }
  // What became of a step that ran with a scale: several may have begun before the first was known. False where the
  // scale can fall no further.
  bool learn(double scale, bool finite);
  // For checkpoints; exact.
  std::string text() const;

 private:
  double value_ = 1024;
  int finite_steps_ = 0;  // since it changed
  std::int64_t left_out_ = 0;
};

}  // namespace trainctl
