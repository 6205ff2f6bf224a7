// Checks losses and gradients for values that are not finite.
#include "parallel/trainer/loop/finite_check.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "core/base/format.h"
#include "core/base/json.h"
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
  skipped_.save(metadata);
  if (scales_loss_) metadata["loss_scale"] = scale_.text();
}

void FiniteCheck::restore(const SnapshotMetadata& metadata) {
  skipped_.restore(metadata);
  const auto found = metadata.find("loss_scale");
  if (found != metadata.end()) scale_ = LossScale(found->second);
}

NotFiniteTensor find_not_finite(Engine& engine, int program, int back, const MeshRank& rank,
                                std::vector<std::int64_t> samples, Communicator& world, Stream& stream) {
  NotFiniteSearch search(engine, program, rank, std::move(samples));
  engine.set_observer(&search);
  StepResult result;
  engine.repeat(back, result);
  engine.set_observer(nullptr);
  double earliest = search.position();
  world.all_reduce({&earliest, DType::float64, 1}, Reduction::minimum, stream);
  stream.synchronize();
  const bool is_first = !search.found().name.empty() && search.position() == earliest;
  int finder = is_first ? world.rank() : world.size();
  world.all_reduce({&finder, DType::int32, 1}, Reduction::minimum, stream);
  stream.synchronize();
  if (finder == world.size()) return {};
  NotFiniteTensor found =
      not_finite_tensor(parse_json(broadcast_text(json_text(to_json(search.found())), finder, world, stream)));
  if (world.size() > 1) found.rank = finder;
  return found;
}

bool values_are_finite(Engine& engine, Communicator& world, Stream& stream) {
  engine.download();
  const auto is_finite = [](const NamedTensor& tensor) {
    const auto* values = tensor.view.as<float>();
    return std::all_of(values, values + tensor.view.count, [](float value) { return std::isfinite(value); });
  };
  const bool finite =
      std::ranges::all_of(engine.weights(), is_finite) && std::ranges::all_of(engine.state(), is_finite);
  return !any_rank(!finite, world, stream);
}

}  // namespace trainctl
