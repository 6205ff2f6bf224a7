// What a run keeps of its input with its checkpoints, so that `predict` reads further samples without the training
// data.
#pragma once

#include <string>
#include <vector>

#include "io/datasets/dataset.h"
#include "io/loader/images/transform_options.h"

namespace trainctl {

// The name among a checkpoint's facts.
inline constexpr const char* kept_input_fact = "input";

// Of a model's only input.
struct KeptInput {
  DatasetFacts facts;                // sample, dtype, scale, offset and table
  std::vector<Statistics> measured;  // by `normalize: measured`, in the order of the config
};

std::string write_kept_input(const KeptInput& input);
// Throws Error{data} where the text is none that write_kept_input() makes.
KeptInput read_kept_input(const std::string& text);

}  // namespace trainctl
