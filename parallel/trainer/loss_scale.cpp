// Dynamic loss scaling.
#include "parallel/trainer/loss_scale.h"

#include <algorithm>
#include <sstream>

#include "core/base/format.h"

namespace trainctl {
namespace {

constexpr int steps_to_double = 2000;
constexpr double smallest = 1.0 / 65536;
constexpr double largest = 1 << 24;

}  // namespace

LossScale::LossScale(const std::string& text) {
  std::istringstream words(text);
  words >> value_ >> finite_steps_ >> left_out_;
}

std::string LossScale::text() const { return format("{} {} {}", value_, finite_steps_, left_out_); }

bool LossScale::learn(double scale, bool finite) {
  if (!finite) {
    ++left_out_;
    if (scale <= smallest) return false;
    // A step that began before an earlier one's overflow was known says nothing new.
    if (scale / 2 < value_) {
      value_ = scale / 2;
      finite_steps_ = 0;
    }
    return true;
  }
  if (scale == value_ && ++finite_steps_ >= steps_to_double) {
    value_ = std::min(2 * value_, largest);
    finite_steps_ = 0;
  }
  return true;
}

}  // namespace trainctl
