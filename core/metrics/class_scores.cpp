// Precision, recall and F1 of each class.
#include "core/metrics/class_scores.h"

namespace trainctl {
namespace {

double quotient(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

std::vector<ClassScores> class_scores(const Table& confusion) {
  std::vector<ClassScores> scores(confusion.size());
  for (std::size_t k = 0; k < confusion.size(); ++k) {
    const double right = confusion[k][k];
    double predicted = 0;
    for (std::size_t other = 0; other < confusion.size(); ++other) {
      predicted += confusion[other][k];
      scores[k].samples += confusion[k][other];
    }
    scores[k].precision = quotient(right, predicted);
    scores[k].recall = quotient(right, scores[k].samples);
    scores[k].f1_score = quotient(2 * right, predicted + scores[k].samples);
  }
  return scores;
}

}  // namespace trainctl
