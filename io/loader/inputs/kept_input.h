// The info about its inputs that a run keeps in its checkpoints, so that `predict` can read samples without the
// training data.
#pragma once

#include <string>
#include <vector>

#include "io/datasets/dataset.h"
#include "io/loader/images/affine.h"

namespace trainctl {

// The keys in a checkpoint's metadata: of the inputs, and of targets that are images.
inline constexpr const char* kept_input_key = "input";
inline constexpr const char* kept_target_key = "target";

// The info that is kept about one input, or about targets that are images.
struct KeptInput {
  DatasetInfo info;                  // sample, dtype, scale, offset, table and vocabulary
  std::vector<Statistics> measured;  // statistics of `normalize: measured`, in the order of the config
};

// Writes the inputs, in the order of the model's, as one line of text.
std::string write_kept_inputs(const std::vector<KeptInput>& inputs);
// Reads the text of write_kept_inputs(). Throws Error{data} for other texts.
std::vector<KeptInput> read_kept_inputs(const std::string& text);

}  // namespace trainctl
