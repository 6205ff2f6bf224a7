// Continues prompts with a trained language model, on all ranks.
#pragma once

#include <string>
#include <vector>

#include "run/generation/continued_text.h"
#include "run/generation/sampling.h"

namespace trainctl {

struct RankContext;
struct RunSpec;
struct TrainedNetwork;

struct GenerateOptions {
  std::vector<std::string> prompts;
  std::string file;  // of prompts
  SamplingOptions sampling;
  EndOptions end;

  bool any() const { return !prompts.empty() || !file.empty(); }
  // Whether an option differs from its default.
  bool changed() const {
    return sampling != SamplingOptions() || !end.stop.empty() || end.max_tokens != EndOptions().max_tokens;
  }
};

// Continues the prompts on all ranks, and prints the texts on rank 0: a single text as it grows, several texts as a
// JSON object each, in the order of the prompts. With `out`, writes the objects into this file instead; with `json`,
// prints one JSON document. Throws Error{config} or {data}. Collective.
void generate(const RunSpec& spec, const GenerateOptions& options, const TrainedNetwork& network,
              const std::string& out, bool json, RankContext& context);

}  // namespace trainctl
