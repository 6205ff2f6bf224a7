// Checks losses and gradients for values that are not finite.
#include "parallel/trainer/loop/finite_check.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "core/base/format.h"
#include "core/exec/observe/not_finite.h"
#include "parallel/comm/text.h"
#include "parallel/trainer/loop/step_queue.h"

namespace trainctl {
namespace {

constexpr int steps_to_double = 2000;
constexpr double min_scale = 1.0 / 65536;
constexpr double max_scale = 1 << 24;

}  // namespace

LossScale::LossScale(const std::string& text) {
  std::istringstream words(text);
  words >> value_ >> finite_steps_ >> left_out_;
}

std::string LossScale::text() const { return format("{} {} {}", value_, finite_steps_, left_out_); }

bool LossScale::learn(double scale, bool finite) {
  if (!finite) {
    ++left_out_;
    if (scale <= min_scale) return false;
    // A step that began before an earlier overflow was known gives no new information.
    if (scale / 2 < value_) {
      value_ = scale / 2;
      finite_steps_ = 0;
    }
    return true;
  }
  if (scale == value_ && ++finite_steps_ >= steps_to_double) {
    value_ = std::min(2 * value_, max_scale);
    finite_steps_ = 0;
  }
  return true;
}

std::string FiniteCheck::why_diverged(const StartedStep& step, const StepResult& result) {
  if (result.not_finite) return "a loss is not finite";
  const bool finite = std::isfinite(result.gradient_norm);
  if (!scales_loss_) return finite ? "" : "the gradient's norm is not finite";
  if (scale_.learn(step.input.loss_scale, finite)) return "";
  return "the gradient exceeds float16's range however small the loss is scaled";
}

void FiniteCheck::save(SnapshotMetadata& metadata) const {
  if (scales_loss_) metadata["loss_scale"] = scale_.text();
}

void FiniteCheck::restore(const SnapshotMetadata& metadata) {
  const auto found = metadata.find("loss_scale");
  if (found != metadata.end()) scale_ = LossScale(found->second);
}

std::string find_not_finite(Engine& engine, int program, int back, const MeshRank& rank, Communicator& world,
                            Stream& stream) {
  NotFiniteSearch search(engine, program, rank);
  engine.set_observer(&search);
  StepResult result;
  engine.repeat(back, result);
  double earliest = search.position();
  world.all_reduce({&earliest, DType::float64, 1}, Reduction::minimum, stream);
  stream.synchronize();
  return first_text(search.position() == earliest ? search.found() : "", world, stream);
}

}  // namespace trainctl
