// Compares traces of one step with different micro-batches: equal values are found to be equal for every size of a
// micro-batch, and the first value that was changed is found.
#include "core/exec/observe/trace_difference.h"

#include <random>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "test/catch.h"

namespace trainctl::trace_difference_test {
namespace {

constexpr std::size_t width = 6;

// Returns the values that `tensor` has for a sample.
std::vector<float> values_of(const std::string& tensor, std::int64_t sample) {
  std::mt19937 random(static_cast<unsigned>(std::hash<std::string>()(tensor) + static_cast<std::size_t>(sample)));
  std::vector<float> values(width);
  for (float& value : values) value = std::normal_distribution<float>()(random);
  return values;
}

// The records that ranks write for the samples 100 to 111 in micro-batches of `micro_batch` samples: two activations, a
// statistic of each micro-batch, and the gradient of an activation.
struct Step {
  std::vector<TraceRecord> records;

  explicit Step(std::int64_t micro_batch) {
    for (std::int64_t first = 100; first < 112; first += micro_batch) {
      std::vector<std::int64_t> samples;
      for (std::int64_t i = 0; i < micro_batch; ++i) samples.push_back(first + i);
      add(0.1, "forward", "dense", "d1/output", samples, true);
      add(0.2, "forward", "batch_norm", "bn/mean", samples, false);
      add(0.3, "forward", "dense", "d2/output", samples, true);
      add(1.1, "backward", "dense_grad", "d1/output/gradient", samples, true);
    }
  }

  void add(double position, const char* segment, const char* op, const char* tensor, std::vector<std::int64_t> samples,
           bool by_sample) {
    TraceRecord record{position, segment, op, tensor, 0, std::move(samples), 0, {}, {}};
    for (const std::int64_t sample : record.samples) {
      const std::vector<float> values = values_of(tensor, sample);
      record.values.insert(record.values.end(), values.begin(), values.end());
      record.sample_hash.push_back(0);
    }
    if (!by_sample) record.sample_hash.clear();
    records.push_back(std::move(record));
    hash(records.back());
  }

  static void hash(TraceRecord& record) {
    record.hash = xxh3(record.values.data(), record.values.size() * sizeof(float));
    for (std::size_t i = 0; i < record.sample_hash.size(); ++i) {
      record.sample_hash[i] = xxh3(record.values.data() + i * width, width * sizeof(float));
    }
  }

  // Changes a value that a tensor has for a sample.
  void change(const std::string& tensor, std::int64_t sample, float by) {
    for (TraceRecord& record : records) {
      for (std::size_t i = 0; i < record.samples.size(); ++i) {
        if (record.tensor != tensor || record.samples[i] != sample) continue;
        record.values[i * width + 2] += by;
        hash(record);
      }
    }
  }
};

}  // namespace

TEST_CASE("a step with other micro-batches is equal sample by sample") {
  for (const std::int64_t micro_batch : {1, 2, 3, 4, 6, 12}) {
    CAPTURE(micro_batch);
    const TraceComparison found = compare(Step(12).records, Step(micro_batch).records);
    CHECK_FALSE(found.first);
    CHECK(found.equal == (micro_batch == 12 ? 4 : 3));
    CHECK(found.incomparable == (micro_batch == 12 ? 0 : 1));  // the statistic
  }
}

TEST_CASE("the first tensor that was changed is found, with its samples and the size of the change") {
  for (const std::int64_t micro_batch : {2, 3, 12}) {
    CAPTURE(micro_batch);
    const Step whole(12);
    Step changed(micro_batch);
    changed.change("d1/output/gradient", 103, 5);
    changed.change("d2/output", 107, 0.5f);
    changed.change("d2/output", 101, 0.25f);
    const TraceComparison found = compare(whole.records, changed.records);
    REQUIRE(found.first);
    CHECK(found.first->tensor == "d2/output");
    CHECK(found.first->op == "dense");
    CHECK(found.first->segment == "forward");
    CHECK(found.first->samples == std::vector<std::int64_t>{101, 107});
    CHECK(found.first->compared == 12);
    CHECK(found.equal == (micro_batch == 12 ? 2 : 1));
    const Difference difference = difference_of(*found.first, whole.records, changed.records);
    CHECK(difference.elements == 12 * width);
    CHECK(difference.differing == 2);
    CHECK(difference.largest_absolute == Approx(0.5).epsilon(1e-5));
  }
}

TEST_CASE("values of several samples are compared if they come from the same samples") {
  Step changed(4);
  changed.change("bn/mean", 109, 1);
  const TraceComparison found = compare(Step(4).records, changed.records);
  REQUIRE(found.first);
  CHECK(found.first->tensor == "bn/mean");
  CHECK_FALSE(found.first->by_sample);
  CHECK(found.first->samples == std::vector<std::int64_t>{108, 109, 110, 111});
  CHECK(difference_of(*found.first, Step(4).records, changed.records).differing == 1);
}

TEST_CASE("a trace is the same after conversion to text and back") {
  const Step step(3);
  const std::vector<TraceRecord> back = parse_trace(to_text(step.records));
  REQUIRE(back.size() == step.records.size());
  for (std::size_t i = 0; i < back.size(); ++i) {
    CHECK(back[i].position == step.records[i].position);
    CHECK(back[i].samples == step.records[i].samples);
    CHECK(back[i].hash == step.records[i].hash);
    CHECK(back[i].sample_hash == step.records[i].sample_hash);
    CHECK(back[i].values == step.records[i].values);
  }
  const std::string text = to_text(step.records);
  CHECK_THROWS_AS(parse_trace(text.substr(0, text.size() - 1)), Error);
  CHECK_THROWS_AS(parse_trace("{\n"), Error);
}

}  // namespace trainctl::trace_difference_test
