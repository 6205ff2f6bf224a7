// Counts evaluations without improvement.
#include "core/metrics/patience.h"

#include <cmath>
#include <sstream>

#include "core/base/format.h"

namespace trainctl {

bool Patience::improves(double value) {
  const bool better = std::isfinite(value) && (!has_best_ || is_better(value, best_, mode_, min_delta_));
  if (better) {
    has_best_ = true;
    best_ = value;
    waited_ = 0;
  } else {
    ++waited_;
  }
  return better;
}

std::string Patience::text() const { return has_best_ ? format("{} {}", waited_, best_) : format("{}", waited_); }

void Patience::read(const std::string& text) {
  std::istringstream stream(text);
  std::string best;
  if (!(stream >> waited_)) waited_ = 0;
  has_best_ = static_cast<bool>(stream >> best);
  best_ = has_best_ ? std::strtod(best.c_str(), nullptr) : 0;
}

}  // namespace trainctl
