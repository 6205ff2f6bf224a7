// The programs of one rank's run.
#include "parallel/trainer/programs.h"

#include <algorithm>
#include <array>
#include <set>

namespace trainctl {

std::vector<int> ranks_with_own_programs(const BatchSizes& sizes, const Mesh& mesh) {
  std::vector<int> found;
  std::set<std::array<std::int64_t, 5>> seen;
  for (int rank = mesh.ranks() - 1; rank >= 0; --rank) {
    const auto part = [&](std::int64_t global) { return share_of(global, MeshRank(mesh, rank)).count; };
    const std::array shares{part(sizes.training), part(sizes.training_last), part(sizes.training_resumed_last),
                            part(sizes.evaluation), part(sizes.evaluation_last)};
    if (seen.insert(shares).second) found.push_back(rank);
  }
  return found;
}

RunPrograms::RunPrograms(const ProgramSpec& spec, const Strategy& strategy, const BatchSizes& sizes, int rank,
                         Reader& reader) {
  const Parallelism parallel = parallelism(strategy, rank);
  rank_ = parallel.rank;
  const std::int64_t full = share_of(sizes.training, rank_).count;
  // Of ranks that have a share of a full batch: one sample at least.
  const std::int64_t micro_batch =
      std::max<std::int64_t>((full + sizes.gradient_accumulation - 1) / sizes.gradient_accumulation, 1);
  const auto add_training = [&](std::int64_t global) {
    const std::int64_t samples = share_of(global, rank_).count;
    if (global == 0 || training_.contains(samples) || !reader.ok()) return;
    training_[samples] = static_cast<int>(programs_.size());
    const int micro_batches =
        global == sizes.training && samples > 0 ? sizes.gradient_accumulation : micro_batches_of(samples, micro_batch);
    programs_.push_back(training_program(spec, samples, micro_batches, reader, parallel));
  };
  const auto add_evaluation = [&](std::int64_t global) {
    const std::int64_t samples = share_of(global, rank_).count;
    if (global == 0 || evaluation_.contains(samples) || !reader.ok()) return;
    evaluation_[samples] = static_cast<int>(programs_.size());
    programs_.push_back(evaluation_program(spec, samples, reader, parallel));
  };
  add_training(sizes.training);
  add_training(sizes.training_last);
  add_training(sizes.training_resumed_last);
  add_evaluation(sizes.evaluation);
  add_evaluation(sizes.evaluation_last);
}

int RunPrograms::training(std::int64_t samples) const { return training_.at(samples); }

int RunPrograms::evaluation(std::int64_t samples) const { return evaluation_.at(samples); }

}  // namespace trainctl
