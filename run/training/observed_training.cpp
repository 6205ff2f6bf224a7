// Trains a run without showing its progress.
#include "run/training/observed_training.h"

#include <optional>

#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/start_ranks.h"
#include "run/given_config.h"
#include "run/job/prepared_data.h"
#include "run/run_spec.h"
#include "run/training/training.h"

namespace trainctl {

int train_observed(const std::string& command, const RankValues& values, const GivenConfig& given, const RunSpec& spec,
                   const LaunchFlags& launch, TrainingRequest training, const Situation& situation) {
  prepare_data_with_progress(spec.data);
  if (const std::optional<int> code =
          supervise_ranks(spec.cluster, launch, launched_config(given), situation, {false, false}))
    return *code;
  training.config = Value<RunSpec>::write(spec);
  training.config_file = given.config;
  training.progress = ProgressStyle::none;
  training.quiet = true;
  RankCommand ranks = rank_command(command, training.config, spec.cluster, launch, values);
  ranks.ends_start_itself = true;
  return run_as_rank(situation, false, ranks, [&](RankContext& context) { return train(spec, training, context); });
}

}  // namespace trainctl
