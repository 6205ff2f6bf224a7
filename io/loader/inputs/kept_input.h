// What a run keeps of its inputs with its checkpoints, so that `predict` reads further samples without the training
// data.
#pragma once

#include <string>
#include <vector>

#include "io/datasets/dataset.h"
#include "io/loader/images/affine.h"

namespace trainctl {

// The name among a checkpoint's metadata.
inline constexpr const char* kept_input_key = "input";

// Of one input.
struct KeptInput {
  DatasetInfo info;                  // sample, dtype, scale, offset and table
  std::vector<Statistics> measured;  // by `normalize: measured`, in the order of the config
};

// The inputs in the order of the model's, as one line of text.
std::string write_kept_inputs(const std::vector<KeptInput>& inputs);
// Throws Error{data} where the text is none that write_kept_inputs() makes.
std::vector<KeptInput> read_kept_inputs(const std::string& text);

}  // namespace trainctl
