// Evaluates a checkpoint of a config on one split of its data, and formats the evaluation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json_fwd.h"
#include "parallel/trainer/evaluate.h"

namespace trainctl {

struct RankContext;
struct RunSpec;

// The checkpoint and the data of an evaluation.
struct EvaluationRequest {
  std::string config_file;  // path of the config
  std::string checkpoint;   // a checkpoint's folder; empty: the best one of the run
  std::string run;          // a run directory; empty: the config's newest run
  std::string split;        // training, validation or test; empty: test if the config has it, else validation
};

// Names of classes. If there are not as many names as classes, classes are shown by number.
using ClassNames = std::vector<std::string>;

struct EvaluatedCheckpoint {
  Evaluation found;          // equal on all ranks
  std::int64_t samples = 0;  // of the split
  std::string checkpoint;    // its path, on rank 0
  ClassNames class_names;    // on rank 0
};

// Adds the confusion matrix to the metrics of each output that has classes. Throws Error{config} if no output has.
RunSpec with_confusion_matrix(RunSpec spec);

// Evaluates a checkpoint. `config` is the config of the user; `spec` may have a confusion matrix added to its metrics.
// Throws Error{config} if the config does not have the split, and the errors of find_run.h and of Job. Collective.
EvaluatedCheckpoint evaluate_checkpoint(const RunSpec& config, RunSpec spec, const EvaluationRequest& request,
                                        RankContext& context);

// Returns a line for each value and, for each confusion matrix, the matrix and the scores of each class.
std::string to_text(const Evaluation& found, const ClassNames& names);

// Returns an object of the values and confusion matrices by name; its "classes" has the scores of each class, by
// matrix.
Json to_json(const Evaluation& found, const ClassNames& names);

}  // namespace trainctl
