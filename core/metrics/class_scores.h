// Computes how well each class is recognized, from a confusion matrix.
#pragma once

#include <vector>

#include "core/metrics/result.h"

namespace trainctl {

// The scores of one class, as scikit-learn's classification_report defines them; a quotient by 0 is 0.
struct ClassScores {
  double precision = 0;  // share of the samples predicted as the class that belong to it
  double recall = 0;     // share of the samples of the class that are predicted as the class
  double f1_score = 0;   // harmonic mean of precision and recall
  double samples = 0;    // sum of the weights of the samples of the class
};

// Returns the scores of each class from a table (confusion_matrix) with a row for each target class and a column for
// each predicted class.
std::vector<ClassScores> class_scores(const Table& confusion);

}  // namespace trainctl
