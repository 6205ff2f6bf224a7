// Sums the penalties on the parameters of all ranks.
#include "parallel/trainer/hooks/regularization.h"
#include "core/backend/communicator.h"
#include "core/exec/interfaces/step_engine.h"
#include "parallel/trainer/loop/training_state.h"

#include <cmath>

namespace trainctl {
namespace {

// Returns whether this rank counts its values of a parameter. Along an axis that splits the parameter all ranks count
// their values, along other axes only the first rank does.
bool counts(const Program& program, const Tensor& parameter, const MeshRank& rank) {
  const auto is_split = [&](MeshAxis axis) {
    const auto i = static_cast<std::size_t>(axis);
    return i < parameter.placements.size() && parameter.placements[i].kind == Placement::Kind::split;
  };
  const bool is_counted_elsewhere = rank.along(MeshAxis::data) > 0 && !program.flat.shares(Quantity::parameters);
  return !is_counted_elsewhere && (rank.along(MeshAxis::tensor) == 0 || is_split(MeshAxis::tensor));
}

}  // namespace

RegularizationLoss::RegularizationLoss(StepEngine& engine, const Program& program, const MeshRank& rank,
                                       Communicator& world, Stream& stream)
    : engine_(engine), world_(world), stream_(stream) {
  for (const FlatEntry& entry : program.flat.parameters) {
    const Tensor& parameter = program.tensor(entry.parameter);
    const auto penalty = program.penalties.find(parameter.name);
    if (penalty != program.penalties.end() && counts(program, parameter, rank)) counted_.insert(*penalty);
  }
  has_penalty_ = sum_over_ranks(static_cast<double>(counted_.size())) > 0;
}

void RegularizationLoss::on_evaluation(TrainingState& state) {
  if (!has_penalty_) return;
  engine_.download();
  state.train["regularization_loss"] = of(engine_.weights());
}

double RegularizationLoss::of(std::span<const NamedTensor> weights) const {
  double sum = 0;
  for (const NamedTensor& tensor : weights) {
    const auto penalty = counted_.find(tensor.name);
    if (penalty == counted_.end()) continue;
    double absolutes = 0, squares = 0;
    for (const float value : std::span(tensor.view.as<float>(), static_cast<std::size_t>(tensor.view.count))) {
      absolutes += std::abs(static_cast<double>(value));
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    sum += static_cast<double>(penalty->second.l1) * absolutes + static_cast<double>(penalty->second.l2) * squares;
  }
  return sum_over_ranks(sum);
}

double RegularizationLoss::sum_over_ranks(double own) const {
  world_.all_reduce({&own, DType::float64, 1}, Reduction::sum, stream_);
  stream_.synchronize();
  return own;
}

}  // namespace trainctl
