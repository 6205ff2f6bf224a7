// The options of plateaus, and the factor on the learning rate.
#include "parallel/trainer/plateau.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "core/base/format.h"

namespace trainctl {

Keys<PlateauOptions> PlateauOptions::keys() {
  using O = PlateauOptions;
  return Keys<O>("reduce_on_plateau",
                 "Lowers the learning rate, which the schedule gives, when a value no longer improves, as Keras' "
                 "ReduceLROnPlateau.")
      .key("monitor", &O::monitor, "The metric that is watched, such as val_accuracy. auto: val_loss.")
      .key("mode", &O::mode,
           "Whether smaller (min) or greater (max) is better. auto: max for metrics that grow as a network gets better "
           "(accuracy, auc, r2_score and so on), min for losses and errors.")
      .key("factor", &O::factor, "What the learning rate is multiplied by.", Range{{}, 0.0, {}, 1.0})
      .key("patience", &O::patience,
           "Evaluations in turn that may be no better than the best one before the learning rate falls.", at_least(0))
      .key("min_delta", &O::min_delta, "What a value must be better by to count.", at_least(0))
      .key("cooldown", &O::cooldown, "Evaluations that are not counted after the learning rate fell.", at_least(0))
      .key("min_learning_rate", &O::min_learning_rate, "The learning rate falls no lower.", at_least(0));
}

Plateau::Plateau(const PlateauOptions& options)
    : options_(options),
      monitor_(options.monitor.or_else("val_loss")),
      patience_(options.mode.or_else(mode_of(monitor_)), options.min_delta) {}

bool Plateau::lowers(double scheduled, const std::map<std::string, double>& values) {
  const auto found = values.find(monitor_);
  if (found == values.end()) return false;
  if (cooling_ > 0) {
    --cooling_;
    patience_.begin_anew();
  }
  const bool better = patience_.improves(found->second);
  if (cooling_ > 0) return false;
  if (better || patience_.waited() < options_.patience) return false;
  const double before = rate(scheduled);
  if (before <= options_.min_learning_rate) return false;
  factor_ *= options_.factor;
  cooling_ = options_.cooldown;
  patience_.begin_anew();
  return true;
}

double Plateau::rate(double scheduled) const {
  return std::max(scheduled * factor_, std::min(scheduled, options_.min_learning_rate));
}

std::string Plateau::text() const { return format("{} {} {}", factor_, cooling_, patience_.text()); }

void Plateau::read(const std::string& text) {
  std::istringstream stream(text);
  std::string factor, rest;
  if (!(stream >> factor >> cooling_)) return;
  factor_ = std::strtod(factor.c_str(), nullptr);
  std::getline(stream, rest);
  patience_.read(rest);
}

}  // namespace trainctl
