// Compares networks that begin with category_encoding with sums over the weights of the tokens.
#include <random>
#include <set>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/core/program/batch_of.h"
#include "test/core/program/job.h"
#include "test/core/program/slopes.h"

namespace trainctl::category_encoding_test {
namespace {

constexpr std::int64_t samples = 5, length = 6, vocabulary = 7;

struct Data {
  std::vector<std::int32_t> tokens;
  std::vector<float> targets, weights;
  std::vector<std::int64_t> numbers;

  Data() : targets(samples, 0.0f), weights(samples, 1.0f) {
    std::mt19937 random(9);
    for (std::int64_t i = 0; i < samples * length; ++i) {
      tokens.push_back(static_cast<std::int32_t>(random() % vocabulary));
    }
    for (std::int64_t i = 0; i < samples; ++i) numbers.push_back(i);
  }
  Batch batch() { return batch_of(tokens, targets, weights, numbers); }
};

TestJob job_of(const std::string& mode) {
  TestJob job("{layers: [{category_encoding: {num_tokens: 7, output_mode: " + mode +
                  "}}, flatten, {dense: {name: last, units: 1}}]}",
              "sgd", "mse", "mean_absolute_error");
  job.spec.inputs[0] = {"", {length}, {DType::int32, {}, {}}};
  job.spec.outputs[0].target.shape = {1};
  return job;
}

}  // namespace

TEST_CASE("category_encoding counts tokens, finds those that occur, or encodes each one", "[category_encoding]") {
  Data data;
  for (const std::string mode : {"count", "multi_hot", "one_hot"}) {
    CAPTURE(mode);
    const TestJob job = job_of(mode);
    const auto backend = make_cpu_backend({});
    const auto communicator = solo_communicator();
    KernelChoices choices;
    const Program program = job.evaluation(samples);
    Engine engine(*backend, *communicator, compile({program}, *backend, choices));
    std::mt19937 random(22);
    draw_weights(engine, random);
    engine.upload();
    StepResult result;
    engine.run(0, data.batch(), {}, result);
    const float* kernel = nullptr;
    const float* bias = nullptr;
    for (const NamedTensor& tensor : engine.weights()) {
      (tensor.name == "last/kernel" ? kernel : bias) = tensor.view.as<float>();
    }
    double squares = 0;
    for (std::int64_t i = 0; i < samples; ++i) {
      std::set<std::int32_t> seen;
      double y = *bias;
      for (std::int64_t t = 0; t < length; ++t) {
        const std::int32_t token = data.tokens[static_cast<std::size_t>(i * length + t)];
        const bool counts = mode != "multi_hot" || seen.insert(token).second;
        if (counts) y += kernel[(mode == "one_hot" ? t * vocabulary : 0) + token];
      }
      squares += y * y;
    }
    CHECK(program.results[0].of(result.sums, result.count) == Approx(squares / samples));
    check_slopes(job.training(samples), data.batch(), 4e-3f);
  }
}

}  // namespace trainctl::category_encoding_test
