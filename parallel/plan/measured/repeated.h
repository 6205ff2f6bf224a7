// Repeats a measurement until two of its results agree, since other work of the machine disturbs each one differently.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace trainctl {

// If the results of a measurement differ by more than this fraction, the machine was busy: the next plan repeats the
// measurement.
inline constexpr double wide_spread = 0.1;

// Whether the time for all measurements is over, so that none is repeated until two results agree. All ranks that
// measure together must call it, and get the same answer. Null: there is no limit.
using OutOfTime = std::function<bool()>;

// The results of one measurement that was taken several times. A result is a list of times. If two lists have different
// lengths, only the times at positions that both have are compared.
class Repeated {
 public:
  // `max_results`: the largest number of repetitions, at least two. Two results agree if the median relative difference
  // of their times is at most `agreement`.
  explicit Repeated(std::size_t max_results = 5, double agreement = 0.03)
      : max_results_(max_results), agreement_(agreement) {}

  void add(std::vector<double> seconds) { results_.push_back(std::move(seconds)); }
  // Whether no further repetition is needed: two results agree, the largest number of repetitions is reached, or there
  // are two results and no time is left.
  bool settled(bool out_of_time = false) const;
  // Returns the index of the result to keep: the shorter of the two results that agree (of the shortest pair, if
  // several pairs agree). If no two results agree, returns the shorter of the two closest ones.
  std::size_t chosen() const { return best().first; }
  // Returns the relative difference of these two results.
  double spread() const;

 private:
  struct Pair {
    std::size_t first = 0, second = 0;  // indices of the pair; `first` is the shorter result
    double distance = 0;
    double seconds = 0;  // sum of the times of result `first`
  };
  Pair best() const;

  std::size_t max_results_;
  double agreement_;
  std::vector<std::vector<double>> results_;
};

}  // namespace trainctl
