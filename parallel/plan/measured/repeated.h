// Repeating a measurement until two of its results agree: whatever else a machine does slows each one differently.
#pragma once

#include <cstddef>
#include <vector>

namespace trainctl {

// Results of one measurement that differ by more than this part from each other were taken on a busy machine: they are
// taken again by the next plan.
inline constexpr double wide_spread = 0.1;

// The results of one measurement that was taken several times. A result is a list of times; of lists of unequal length
// the first times are compared.
class Repeated {
 public:
  // `most` repetitions at most, and at least two. Two agree if half of their times differ by at most
  // this part, `agreement`, of the shorter one.
  explicit Repeated(std::size_t most = 5, double agreement = 0.03) : most_(most), agreement_(agreement) {}

  void add(std::vector<double> seconds) { results_.push_back(std::move(seconds)); }
  // Whether no further repetition is needed: two agree, or there are as many as may be.
  bool settled() const;
  // The index of the result to keep: the shorter one of the two that agree, of several such pairs of the shortest;
  // where none agree, of the two that are closest to each other.
  std::size_t chosen() const { return best().first; }
  // How far the two are from each other.
  double spread() const;

 private:
  struct Pair {
    std::size_t first = 0, second = 0;  // the first is the shorter one
    double distance = 0;
    double seconds = 0;  // of the first
  };
  Pair best() const;

  std::size_t most_;
  double agreement_;
  std::vector<std::vector<double>> results_;
};

}  // namespace trainctl
