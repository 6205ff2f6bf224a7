// The factor on the loss that keeps float16 gradients within their range (Micikevicius et al., 2018): halved after a
// step whose gradient overflowed, doubled after many that did not.
#pragma once

#include <string>

namespace trainctl {

class LossScale {
 public:
  LossScale() = default;
  // From what text() gave.
  explicit LossScale(const std::string& text);

  double value() const { return value_; }
  // What became of a step that ran with a scale: several may have begun before the first was known. False where the
  // scale can fall no further.
  bool learn(double scale, bool finite);
  // For checkpoints; exact.
  std::string text() const;

 private:
  double value_ = 1024;
  int finite_steps_ = 0;  // since it changed
};

}  // namespace trainctl
