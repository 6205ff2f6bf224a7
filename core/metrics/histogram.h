// The distribution of a tensor's values: counts in fixed buckets, which can be added over pieces of a tensor.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace trainctl {

// A value's bucket is the upper twelve bits of its float32: sign, exponent, and the three highest bits of the mantissa.
// Buckets are the same for all tensors, eight for each power of two, so that counts of pieces are added without loss.
class Histogram {
 public:
  static constexpr int buckets = 1 << 12;

  Histogram() : counts_(buckets) {}

  // Multiplies each value by `scale` and counts it; values that are not finite are left out.
  void add(std::span<const float> values, double scale = 1);

  // A bucket that has values in it.
  struct Bucket {
    double low = 0, high = 0;  // edges of the bucket
    std::int64_t count = 0;
  };
  // Returns the buckets that have values, from the lowest to the highest.
  std::vector<Bucket> filled() const;

  std::int64_t count() const;
  double sum() const { return sums_[0]; }
  double sum_of_squares() const { return sums_[1]; }
  double minimum() const { return extremes_[0]; }   // infinity without values
  double maximum() const { return -extremes_[1]; }  // minus infinity without values

  // The whole state, for merging the histograms of a tensor's pieces: counts and sums are added, and the minimum of the
  // extremes is used.
  std::span<std::int64_t> counts() { return counts_; }
  std::span<double> sums() { return sums_; }
  std::span<double> extremes() { return extremes_; }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  std::vector<std::int64_t> counts_;           // one count for each bucket
  double sums_[2] = {0, 0};                    // sum of the values, sum of their squares
  double extremes_[2] = {infinity, infinity};  // smallest value, smallest negated value
};

}  // namespace trainctl
