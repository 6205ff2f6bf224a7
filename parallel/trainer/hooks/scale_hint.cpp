// Logs the warning of samples that are not scaled.
#include "parallel/trainer/hooks/scale_hint.h"

#include "core/base/format.h"
#include "core/base/log.h"
#include "core/program/program.h"
#include "parallel/trainer/loop/training_state.h"

namespace trainctl {

std::string scale_advice(const Program& program) {
  bool images = false, values = false, columns = false;
  for (const TensorId input : program.batch.inputs) {
    const TensorType& type = program.tensor(input).type;
    if (type.dtype == DType::int32) continue;  // tokens or classes
    const std::int64_t rank = type.shape.rank() - 1;
    (rank >= 3 || type.dtype == DType::uint8 ? images : rank == 1 ? columns : values) = true;
  }
  const char* const scaled = "most likely the samples are not scaled; ";
  if (images) return format("{}add data.transform: [rescale: 1/255] for bytes, or a normalize", scaled);
  if (values) return format("{}add data.transform: [normalize: measured]", scaled);
  if (columns) {
    return format(
        "{}bring each column to mean 0 and deviation 1: `standardize: true` in the data of a table, or "
        "data.transform: [normalize: measured]",
        scaled);
  }
  return "most likely the initial weights are too large; check the initializers, above all of the last layer";
}

ScaleHint::ScaleHint(const Program& program, std::int64_t first)
    : chance_loss_(program.chance_loss), advice_(scale_advice(program)), first_(first) {}

void ScaleHint::on_step_end(const TrainingState& state, double loss) {
  constexpr double suspicious_ratio = 4;
  if (state.step > first_ || chance_loss_ == 0 || loss < suspicious_ratio * chance_loss_ + 2) return;
  log::warning(
      format("the first loss is {:.4g}, far above the {:.4g} of random guesses: {}", loss, chance_loss_, advice_));
}

}  // namespace trainctl
