// Tests bits_per_byte of a whole program against the loss and the bytes of the targets.
#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/core/program/batch_of.h"
#include "test/core/program/job.h"
#include "test/core/program/slopes.h"

namespace trainctl::bits_per_byte_test {

TEST_CASE("bits_per_byte is the sum of losses in bits over the bytes of the tokens that count") {
  constexpr std::int64_t samples = 6, positions = 5, tokens = 7;
  const std::string terms =
      GENERATE("", ", label_smoothing: 0.1", ", z_loss: 0.1", ", z_loss: 0.1, label_smoothing: 0.2");
  const std::string network = "layers: [{embedding: {input_dim: 7, output_dim: 4}}, {dense: {units: 7}}]",
                    loss = "{name: sparse_categorical_crossentropy, from_logits: true, ignore_index: 6";
  TestJob job(network, "sgd", loss + terms + "}", "accuracy, bits_per_byte, perplexity");
  job.spec.inputs[0].sample = {positions};
  job.spec.inputs[0].format.dtype = DType::int32;
  const auto table = std::make_shared<const std::vector<float>>(std::vector<float>{0, 1, 2, 3, 4, 5, 6});
  job.spec.outputs[0].target = {tokens, {positions}};
  job.spec.outputs[0].target.token_bytes = [&] { return table; };
  std::mt19937 random(3);
  std::vector<std::int32_t> inputs, targets;
  std::vector<float> weights;
  std::vector<std::int64_t> numbers;
  double bytes = 0, weight_sum = 0;
  for (std::int64_t i = 0; i < samples; ++i) {
    weights.push_back(i == 2 ? 0.0f : 0.5f + static_cast<float>(i));
    numbers.push_back(i);
    for (std::int64_t p = 0; p < positions; ++p) {
      inputs.push_back(static_cast<std::int32_t>(random() % tokens));
      targets.push_back(static_cast<std::int32_t>(random() % tokens));
      if (targets.back() == 6) continue;
      bytes += weights.back() * (*table)[static_cast<std::size_t>(targets.back())];
      weight_sum += 1;
    }
  }
  const Batch batch = batch_of(inputs, targets, weights, numbers);
  // The loss without further terms, by another job with the same weights.
  TestJob plain(network, "sgd", loss + "}", "accuracy");
  plain.spec.inputs = job.spec.inputs;
  plain.spec.outputs[0].target = job.spec.outputs[0].target;
  const auto check = [&](const Program& program, const Program& without_terms) {
    const auto value_of = [](const Program& of, const ProgramRun& run, const std::string& name) {
      const auto found = std::ranges::find(of.results, name, &MetricResult::name);
      REQUIRE(found != of.results.end());
      return run.values[static_cast<std::size_t>(found - of.results.begin())];
    };
    const ProgramRun run = run_program(program, batch);
    const double mean = value_of(without_terms, run_program(without_terms, batch), "loss");
    CAPTURE(terms, mean);
    CHECK((value_of(program, run, "loss") == Approx(mean).epsilon(1e-5)) == terms.empty());
    CHECK(value_of(program, run, "bits_per_byte") == Approx(mean * weight_sum / std::log(2.0) / bytes).epsilon(1e-5));
    CHECK(value_of(program, run, "perplexity") == Approx(std::exp(mean)).epsilon(1e-5));
  };
  check(job.training(samples), plain.training(samples));
  check(job.evaluation(samples), plain.evaluation(samples));
}

}  // namespace trainctl::bits_per_byte_test
