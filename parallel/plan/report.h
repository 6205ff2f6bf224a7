// A plan as people and programs read it.
#pragma once

#include <string>
#include <vector>

#include "parallel/plan/prediction.h"

namespace trainctl {

// Another way to spread the job over the ranks.
struct Alternative {
  StrategyOptions options;
  Mesh mesh;
  int micro_batches = 1;
  std::int64_t gradient_accumulation = 1;  // as train.gradient_accumulation
  std::int64_t memory = 0;                 // bytes of the rank that needs most, for training alone
  bool fits = true;
  double step_seconds = 0;
  double samples_per_second = 0;
};

// Whether an alternative is to be preferred: it fits, or is faster, or needs less memory where neither fits.
bool is_preferred(const Alternative& a, const Alternative& b);

struct Plan {
  std::string name;        // of the run
  bool automatic = false;  // its strategy is the one that `strategy: auto` takes
  PlanTarget target;
  Prediction prediction;
  DType compute = DType::float32;
  std::int64_t gradient_accumulation = 1;  // as stated
  bool data_at_hand = true;                // else the number of samples is not known
  TrainingLength length;
  std::vector<Alternative> alternatives;  // those that fit first, the fastest first
  std::string advice;                     // why the YAML below would be better; empty: nothing is known to be
  std::string yaml;
};

// Ranks the alternatives, and takes from them what makes the plan fit, or faster by more than a percent.
void rank_alternatives(Plan& plan);

// One JSON document of a line, and tables for people.
std::string to_json(const Plan& plan);
std::string to_text(const Plan& plan);

}  // namespace trainctl
