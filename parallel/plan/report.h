// Formats a plan as text and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parallel/plan/expected_saves.h"
#include "parallel/plan/prediction.h"
#include "parallel/plan/recovery.h"

namespace trainctl {

// Another strategy for the job on the same ranks.
struct Alternative {
  StrategyOptions options;
  Mesh mesh;
  int micro_batches = 1;
  std::int64_t gradient_accumulation = 1;  // train.gradient_accumulation
  std::int64_t memory = 0;                 // bytes of the rank that needs the most, for training without evaluation
  bool fits = true;
  double step_seconds = 0;
  double samples_per_second = 0;
};

// Whether `a` is better than `b`: it fits and `b` does not; both fit and it is faster; neither fits and it needs less
// memory.
bool is_preferred(const Alternative& a, const Alternative& b);

struct Plan {
  std::string name;        // name of the run
  bool automatic = false;  // whether `strategy: auto` chose the strategy
  PlanTarget target;
  Prediction prediction;
  DType compute = DType::float32;
  std::int64_t gradient_accumulation = 1;  // train.gradient_accumulation
  bool data_at_hand = true;                // whether the number of samples is known
  TrainingLength length;
  std::int64_t shared_memory = 0;         // bytes of the copies of the run's state on rank 0's host
  std::optional<ExpectedSaves> saves;     // with checkpoint.every: auto; empty if the interval is fixed or unknown
  std::optional<Recovery> recovery;       // with several ranks, or if the run starts again after failures
  std::vector<Alternative> alternatives;  // the fitting ones first, the fastest first
  std::string advice;                     // why the YAML below would be better; empty: no better strategy is known
  std::string yaml;                       // the recommended change of the config
};

// Sorts the alternatives, the best first, and sets the plan's advice and YAML if one fits where the plan does not, or
// is more than one percent faster.
void rank_alternatives(Plan& plan);

// Returns a JSON document in one line.
std::string to_json(const Plan& plan);
// Returns tables for people.
std::string to_text(const Plan& plan);

}  // namespace trainctl
