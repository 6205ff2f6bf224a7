// Compares programs with a fused loss with programs that compute all logits.
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/ops/losses/linear_cross_entropy.h"
#include "test/catch.h"
#include "test/core/program/job.h"
#include "test/core/program/slopes.h"

namespace trainctl::fused_loss_test {
namespace {

constexpr std::int64_t positions = 512, samples = 8, classes = 8200;
const std::string tied =
    "layers: [{reversible_embedding: {name: t, input_dim: 8200, output_dim: 8}}, {dense: {units: 8, activation: "
    "tanh}}, "
    "{reversible_embedding: {name: t, reverse: true}}]";
const std::string untied =
    "layers: [{embedding: {input_dim: 8200, output_dim: 8}}, {dense: {units: 8200, activation: softmax}}]";

const std::string smoothed = ", label_smoothing: 0.1, z_loss: 0.01", ignoring = ", ignore_index: -100";

TestJob job_of(const std::string& network, const std::string& loss, const std::string& metrics,
               DType compute = DType::float32) {
  TestJob job(network, "sgd", "{name: sparse_categorical_crossentropy" + loss + "}", metrics);
  job.spec.inputs[0].sample = {positions};
  job.spec.inputs[0].format.dtype = DType::int32;
  job.spec.outputs[0].target.classes = classes;
  job.spec.outputs[0].target.shape = {positions};
  job.spec.compute = compute;
  return job;
}

bool fuses(const Program& program) {
  for (const Segment& segment : program.segments) {
    for (const Op& op : segment.ops) {
      if (op.get_if<LinearCrossEntropy>() != nullptr) return true;
    }
  }
  return false;
}

// Random tokens, and targets of which some are -100.
struct Samples {
  std::vector<std::int32_t> tokens, targets;
  std::vector<float> weights;
  std::vector<std::int64_t> numbers;

  explicit Samples(bool ignores) : numbers(samples) {
    std::mt19937 random(5);
    for (std::int64_t i = 0; i < samples * positions; ++i) {
      tokens.push_back(static_cast<std::int32_t>(random() % classes));
      targets.push_back(ignores && i % 5 == 0 ? -100 : static_cast<std::int32_t>(random() % classes));
    }
    for (std::int64_t i = 0; i < samples; ++i) {
      weights.push_back(i == 3 ? 0.0f : 0.5f + 0.25f * static_cast<float>(i));
      numbers[static_cast<std::size_t>(i)] = i;
    }
  }
  Batch batch(std::int64_t first, std::int64_t count) {
    Batch batch;
    batch.inputs = {{tokens.data() + first * positions, DType::int32, count * positions}};
    batch.targets = {{targets.data() + first * positions, DType::int32, count * positions}};
    batch.weights = {weights.data() + first, DType::float32, count};
    batch.samples = {numbers.data() + first, DType::int64, count};
    batch.count = count;
    return batch;
  }
};

// Compares the two programs with 1 and, where half of the logits are large enough, 2 micro-batches, and in evaluation.
void compare(const std::string& network, DType compute, const std::string& loss) {
  CAPTURE(network, name_of(compute), loss);
  Samples data(loss == ignoring);
  // top-k needs the logits.
  const TestJob fused = job_of(network, loss, "accuracy", compute);
  const TestJob whole = job_of(network, loss, "accuracy, top_k_categorical_accuracy", compute);
  const auto results_of = [&](const Program& a, const Program& b) {
    REQUIRE(fuses(a));
    REQUIRE_FALSE(fuses(b));
    std::pair<ProgramRun, ProgramRun> results{run_program(a, data.batch(0, samples)),
                                              run_program(b, data.batch(0, samples))};
    CHECK(results.first.values[0] == Approx(results.second.values[0]).epsilon(1e-5));
    // Logits that are rounded to bfloat16 may be equal; processors without bfloat16 do not round those of the fused op.
    CHECK(results.first.values[1] == Approx(results.second.values[1]).margin(compute == DType::float32 ? 0 : 5e-4));
    return results;
  };
  for (int micro_batches = 1; micro_batches <= (compute == DType::float32 ? 2 : 1); ++micro_batches) {
    const Program a = fused.training(samples, micro_batches);
    const auto [got, expected] = results_of(a, whole.training(samples, micro_batches));
    double largest = 0, difference = 0;
    REQUIRE(got.gradients.size() > static_cast<std::size_t>(a.flat.trainable_count));
    for (std::size_t i = 0; i < static_cast<std::size_t>(a.flat.trainable_count); ++i) {
      largest = std::max<double>(largest, std::abs(expected.gradients[i]));
      difference = std::max<double>(difference, std::abs(got.gradients[i] - expected.gradients[i]));
    }
    CHECK(difference < (compute == DType::float32 ? 1e-5 : 1e-2) * largest);
  }
  results_of(fused.evaluation(samples), whole.evaluation(samples));
}

}  // namespace

// Any two of network, dtype and loss occur together.
TEST_CASE("a program with a fused loss has the results and the gradients of one that computes all logits") {
  compare(tied, DType::float32, "");
  compare(tied, DType::bfloat16, smoothed);
  compare(tied, DType::float32, ignoring);
  compare(untied, DType::bfloat16, "");
  compare(untied, DType::float32, smoothed);
  compare(untied, DType::bfloat16, ignoring);
}

TEST_CASE("a fused loss is divided by its own count if another output leaves out other positions") {
  const std::string network =
      "outputs: [words, kind]\n"
      "layers: [{embedding: {name: t, input_dim: 8200, output_dim: 8}}, {dense: {name: words, units: 8200}}, "
      "{global_average_pooling1d: {from: t}}, {dense: {name: kind, units: 3}}]";
  Samples data(true);
  std::vector<std::int32_t> kinds;
  for (std::int64_t i = 0; i < samples; ++i) kinds.push_back(static_cast<std::int32_t>(i % 3));
  Batch batch = data.batch(0, samples);
  batch.targets.push_back({kinds.data(), DType::int32, samples});
  const auto two = [&](const std::string& metrics) {
    TestJob job = job_of(network, ", from_logits: true, ignore_index: -100", metrics);
    const TestJob plain = job_of(untied, ", from_logits: true", "accuracy");
    job.spec.outputs.push_back(plain.spec.outputs[0]);
    job.spec.outputs[0].name = "words";
    job.spec.outputs[1].name = "kind";
    job.spec.outputs[1].target = {};
    job.spec.outputs[1].target.classes = 3;
    return job;
  };
  for (const int micro_batches : {1, 2}) {
    const TestJob fused = two("accuracy"), whole = two("accuracy, top_k_categorical_accuracy");
    const Program a = fused.training(samples, micro_batches), b = whole.training(samples, micro_batches);
    REQUIRE(fuses(a));
    REQUIRE_FALSE(fuses(b));
    const ProgramRun got = run_program(a, batch), expected = run_program(b, batch);
    for (std::size_t i = 0; i < 4; ++i) CHECK(got.values[i] == Approx(expected.values[i]).epsilon(1e-5));
    double largest = 0, difference = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(a.flat.trainable_count); ++i) {
      largest = std::max<double>(largest, std::abs(expected.gradients[i]));
      difference = std::max<double>(difference, std::abs(got.gradients[i] - expected.gradients[i]));
    }
    CHECK(difference < 1e-5 * largest);
  }
}

TEST_CASE("perplexity leaves a fused loss with a z-loss fused, and reads the logits of one with label smoothing") {
  Samples data(true);
  for (const std::string terms : {", z_loss: 0.01", ", label_smoothing: 0.1, z_loss: 0.01"}) {
    CAPTURE(terms);
    const TestJob plain = job_of(tied, ignoring, "accuracy"),
                  job = job_of(tied, ignoring + terms, "accuracy, perplexity");
    const auto check = [&](const Program& program, const Program& without_terms) {
      CHECK(fuses(program) == (terms.find("smoothing") == std::string::npos));
      REQUIRE(program.results.back().name == "perplexity");
      const double mean = run_program(without_terms, data.batch(0, samples)).values[0];
      const ProgramRun run = run_program(program, data.batch(0, samples));
      CHECK(run.values[0] > mean * 1.001);
      CHECK(run.values.back() == Approx(std::exp(mean)).epsilon(1e-4));
    };
    check(job.training(samples), plain.training(samples));
    check(job.training(samples, 2), plain.training(samples, 2));
    check(job.evaluation(samples), plain.evaluation(samples));
  }
}

TEST_CASE("losses are fused only if they are large and nothing else reads the logits") {
  CHECK(fuses(job_of(tied, "", "accuracy, perplexity").training(samples)));
  CHECK(fuses(job_of(tied, "", "accuracy").training(1)));
  TestJob small = job_of(tied, "", "accuracy");  // the logits of a sample take 2 MiB
  small.spec.inputs[0].sample = small.spec.outputs[0].target.shape = {64};
  CHECK_FALSE(fuses(small.training(samples)));
  const TestJob focal(untied, "sgd", "sparse_categorical_focal_crossentropy", "accuracy");
  TestJob other = job_of(untied, "", "accuracy");
  other.spec.outputs[0].loss = focal.spec.outputs[0].loss;
  CHECK_FALSE(fuses(other.training(samples)));
  const std::string capped =
      "layers: [{reversible_embedding: {name: t, input_dim: 8200, output_dim: 8, logit_soft_cap: 9}}, "
      "{reversible_embedding: {name: t, reverse: true}}]";
  CHECK_FALSE(fuses(job_of(capped, "", "accuracy").training(samples)));
  const std::string frozen =
      "freeze: [last]\n"
      "layers: [{embedding: {input_dim: 8200, output_dim: 8}}, {dense: {name: last, units: 8200}}]";
  CHECK_FALSE(fuses(job_of(frozen, "", "accuracy").training(samples)));
  CHECK_FALSE(fuses(job_of(tied, "", "accuracy").prediction(samples)));
}

}  // namespace trainctl::fused_loss_test
