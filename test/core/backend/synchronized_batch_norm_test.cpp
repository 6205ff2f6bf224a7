// Compares the merged moments of ranks with the mean and the variance of all values in float64.
#include "core/graph/ops/normalization/synchronized_batch_norm.h"

#include <cmath>

#include "core/tensor/sample_numbers.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::synchronized_batch_norm_test {
namespace {

struct Part {
  Value x, numbers;
};

Value concatenated(const std::vector<Value>& values) {
  Value all = values.front();
  all.type.shape[0] *= static_cast<std::int64_t>(values.size());
  for (std::size_t i = 1; i < values.size(); ++i) {
    all.values.insert(all.values.end(), values[i].values.begin(), values[i].values.end());
  }
  return all;
}

}  // namespace

TEST_CASE("merged moments are those of all values of the ranks that have samples") {
  const auto backend = backend_under_test();
  for (const std::int64_t channels : {1, 5, 16}) {
    // Ranks have different numbers of samples and different means, one of them large; the third has no samples.
    std::vector<Part> parts;
    for (const std::int64_t samples : {3, 1, 2, 4}) {
      const auto number = parts.size();
      const double middle = number == 1 ? 1000 : static_cast<double>(number);
      Value x = random_value({samples, 3, 2, channels}, DType::float32, 20 + number, middle - 1, middle + 1);
      Value numbers{{{samples}, DType::int64}, std::vector<double>(static_cast<std::size_t>(samples), 7)};
      const auto all_are = [&](std::int64_t it) { std::ranges::fill(numbers.values, static_cast<double>(it)); };
      if (number == 2) all_are(no_sample);
      if (number == 1) all_are(skipped_sample(5));  // positions of skipped samples hold other samples, which count
      if (number == 3) numbers.values[0] = static_cast<double>(skipped_sample(0));
      parts.push_back({std::move(x), std::move(numbers)});
    }
    std::vector<Value> moments;
    for (const Part& part : parts) {
      moments.push_back(run_op(*backend, std::make_shared<BatchMoments>(), {part.x, part.numbers})[0]);
    }
    const Value all = concatenated(moments);
    std::vector<double> first;
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      const auto merged = run_op(*backend, std::make_shared<MergeMoments>(), {all, moments[rank]});
      std::vector<double> both = merged[0].values;
      both.insert(both.end(), merged[1].values.begin(), merged[1].values.end());
      if (rank == 0) first = both;
      CHECK(both == first);  // the same bits on all ranks
      const double values = 6.0 * (3 + 1 + 4);
      CHECK(merged[2].values[0] == (rank == 2 ? 0 : round_to(DType::float32, 1 / values)));
      for (std::int64_t c = 0; c < channels; ++c) {
        double sum = 0, squares = 0;
        const auto each = [&](const auto& add) {
          for (std::size_t r = 0; r < parts.size(); ++r) {
            for (auto i = static_cast<std::size_t>(c); r != 2 && i < parts[r].x.values.size();
                 i += static_cast<std::size_t>(channels)) {
              add(parts[r].x.values[i]);
            }
          }
        };
        each([&](double value) { sum += value; });
        each([&](double value) { squares += (value - sum / values) * (value - sum / values); });
        const auto at = static_cast<std::size_t>(c);
        CHECK(merged[0].values[at] == Approx(sum / values).epsilon(1e-6));
        CHECK(merged[1].values[at] == Approx(squares / values).epsilon(1e-5));
      }
    }
  }
}

}  // namespace trainctl::test::synchronized_batch_norm_test
