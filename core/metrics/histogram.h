// How the values of a tensor are distributed: counts in fixed buckets, which add up over parts of a tensor.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace trainctl {

// A value's bucket is the upper twelve bits of its float32: sign, exponent, and three bits behind the point. Buckets
// are the same for all tensors, eight for each power of two, so that counts of parts are added without any loss.
class Histogram {
 public:
  static constexpr int buckets = 1 << 12;

  Histogram() : counts_(buckets) {}

  // Counts the values, each times `scale`; those that are not finite are left out.
  void add(std::span<const float> values, double scale = 1);

  // A bucket that has values in it.
  struct Bucket {
    double low = 0, high = 0;  // its edges
    std::int64_t count = 0;
  };
  // Those that have values, from the lowest to the highest.
  std::vector<Bucket> filled() const;

  std::int64_t count() const;
  double sum() const { return sums_[0]; }
  double sum_of_squares() const { return sums_[1]; }
  double minimum() const { return extremes_[0]; }   // infinity without values
  double maximum() const { return -extremes_[1]; }  // minus infinity without values

  // What is added up over the parts of a tensor, and that of which the least is taken: all there is.
  std::span<std::int64_t> counts() { return counts_; }
  std::span<double> sums() { return sums_; }
  std::span<double> extremes() { return extremes_; }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  std::vector<std::int64_t> counts_;           // by the bits
  double sums_[2] = {0, 0};                    // of the values and their squares
  double extremes_[2] = {infinity, infinity};  // the least value, and the least of the negated ones
};

}  // namespace trainctl
