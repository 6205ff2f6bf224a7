// How well each class is recognized, from a table of classes by predictions.
#pragma once

#include <vector>

#include "core/metrics/result.h"

namespace trainctl {

// Of one class, as scikit-learn's classification_report defines them; a quotient by 0 is 0.
struct ClassScores {
  double precision = 0;  // of the samples that were predicted to be of the class, the share that is
  double recall = 0;     // of the samples of the class, the share that was predicted so
  double f1_score = 0;   // the harmonic mean of the two
  double samples = 0;    // of the class, in weights
};

// By class, from a table whose rows are targets and whose columns are predictions (confusion_matrix).
std::vector<ClassScores> class_scores(const Table& confusion);

}  // namespace trainctl
