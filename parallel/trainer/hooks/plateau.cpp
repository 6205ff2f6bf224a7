// Computes the factor on the learning rate.
#include "parallel/trainer/hooks/plateau.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "core/base/format.h"
#include "core/base/log.h"
#include "parallel/trainer/hooks/result_warnings.h"
#include "parallel/trainer/loop/training_state.h"

namespace trainctl {

Plateau::Plateau(const PlateauOptions& options, ResultWarnings* warnings, bool logs)
    : options_(options),
      monitor_(options.monitor.or_else("val_loss")),
      patience_(options.mode.or_else(mode_of(monitor_)), options.min_delta),
      warnings_(warnings),
      logs_(logs) {}

void Plateau::on_epoch_end(const TrainingState& state, double, double scheduled) {
  const std::map<std::string, double> values = state.values();
  if (warnings_ != nullptr) warnings_->missing("reduce_on_plateau", monitor_, values);
  if (!lowers(scheduled, values) || !logs_) return;
  log::info(format("{} no longer improves: the learning rate falls to {:.4g}", monitor_, rate(scheduled)));
}

void Plateau::restore(const SnapshotMetadata& metadata) {
  const auto found = metadata.find("reduce_on_plateau");
  if (found != metadata.end()) read(found->second);
}

void Plateau::forget_best(SnapshotMetadata& metadata) {
  const auto found = metadata.find("reduce_on_plateau");
  if (found == metadata.end()) return;
  std::istringstream stream(found->second);
  std::string factor, cooling;
  stream >> factor >> cooling;
  found->second = factor + " " + cooling;
}

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
