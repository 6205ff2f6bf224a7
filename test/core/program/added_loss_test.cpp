// Compares added losses with values in float64, and their gradients with slopes.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/sample_numbers.h"
#include "test/catch.h"
#include "test/core/program/batch_of.h"
#include "test/core/program/job.h"
#include "test/core/program/slopes.h"

namespace trainctl::added_loss_test {
namespace {

constexpr std::int64_t samples = 6, width = 4;

const std::string layers =
    "layers: [{dense: {name: mean, units: 3}}, {dense: {name: spread, from: input, units: 3}}, "
    "{lambda: {from: [mean, spread], inputs: [m, v], expression: m * exp(v)}}, {dense: 4}]";
const std::string kl =
    "{from: [mean, spread], inputs: [m, v], expression: '-0.5 * sum(1 + v - square(m) - exp(v), axis=-1)', weight: "
    "0.25}";

TestJob job_of(const std::string& added, const std::string& network = layers, const std::string& loss = "mse") {
  TestJob job("{" + network + ", add_loss: " + added + "}", "sgd", loss, "mean_absolute_error");
  job.spec.inputs[0].sample = job.spec.outputs[0].target.shape = {width};
  return job;
}

// Random samples. Sample 2 has weight 0, and sample 4 is missing.
struct Samples {
  std::vector<float> inputs, targets, weights;
  std::vector<std::int64_t> numbers;

  Samples() {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < samples; ++i) {
      for (std::int64_t k = 0; k < width; ++k) {
        inputs.push_back(i == 4 ? 0.0f : normal(random));
        targets.push_back(i == 4 ? 0.0f : normal(random));
      }
      weights.push_back(i == 2 || i == 4 ? 0.0f : 0.5f + 0.25f * static_cast<float>(i));
      numbers.push_back(i == 4 ? no_sample : i);
    }
  }
  Batch batch() { return batch_of(inputs, targets, weights, numbers); }
};

struct Results {
  std::map<std::string, double> values;  // by the names of the results
  std::map<std::string, std::vector<float>> weights;
};

Results run(const Program& program, const Batch& batch) {
  const auto backend = make_cpu_backend({});
  const auto communicator = solo_communicator();
  KernelChoices choices;
  Engine engine(*backend, *communicator, compile({program}, *backend, choices));
  std::mt19937 random(22);
  draw_weights(engine, random);
  engine.upload();
  StepResult result;
  engine.run(0, batch, {}, result);
  Results results;
  for (const MetricResult& of : program.results) results.values[of.name] = of.of(result.sums, result.count);
  for (const NamedTensor& tensor : engine.weights()) {
    results.weights[tensor.name].assign(tensor.view.as<float>(), tensor.view.as<float>() + tensor.view.count);
  }
  return results;
}

Results run(const Program& program, Samples& data) { return run(program, data.batch()); }

// The value of unit `unit` of a dense layer for a sample.
double dense(const Results& results, const std::string& layer, const Samples& data, std::int64_t sample, int unit) {
  const std::vector<float>&kernel = results.weights.at(layer + "/kernel"), &bias = results.weights.at(layer + "/bias");
  double sum = bias[static_cast<std::size_t>(unit)];
  for (std::int64_t k = 0; k < width; ++k) {
    sum += double{data.inputs[static_cast<std::size_t>(sample * width + k)]} *
           kernel[static_cast<std::size_t>(k) * bias.size() + static_cast<std::size_t>(unit)];
  }
  return sum;
}

std::string error_of(const std::string& added, const std::string& network = layers, const std::string& loss = "mse",
                     bool with_metrics = true) {
  try {
    TestJob job = job_of(added, network, loss);
    if (!with_metrics) job.spec.outputs[0].metrics.clear();
    static_cast<void>(job.training(samples));
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an added loss is the mean over all samples, and adds to the loss of the output", "[add_loss]") {
  Samples data;
  for (const bool by_weight : {false, true}) {
    CAPTURE(by_weight);
    TestJob job = job_of("{kl: " + kl + "}");
    TestJob without = job_of("{}");
    if (by_weight) job.spec.loss_reduction = without.spec.loss_reduction = LossReduction::mean_with_sample_weight;
    const Results results = run(job.evaluation(samples), data), alone = run(without.evaluation(samples), data);
    double sum = 0, count = 0;
    for (std::int64_t i = 0; i < samples; ++i) {
      const double weight = by_weight ? data.weights[static_cast<std::size_t>(i)] : i == 4 ? 0 : 1;
      count += weight;
      for (int unit = 0; unit < 3; ++unit) {
        const double m = dense(results, "mean", data, i, unit), v = dense(results, "spread", data, i, unit);
        sum += -0.5 * weight * (1 + v - m * m - std::exp(v));
      }
    }
    CHECK(results.values.at("kl_loss") == Approx(sum / count));
    CHECK(results.values.at("output_loss") == Approx(alone.values.at("loss")));
    CHECK(results.values.at("loss") == Approx(alone.values.at("loss") + 0.25 * sum / count));
    CHECK(results.values.at("mean_absolute_error") == Approx(alone.values.at("mean_absolute_error")));
    for (const int micro_batches : {1, 3}) {
      const Results training = run(job.training(samples, micro_batches), data);
      CHECK(training.values.at("kl_loss") == Approx(sum / count));
    }
  }
}

TEST_CASE("gradients of added losses are the slopes of the loss", "[add_loss]") {
  Samples data;
  for (const std::string& added :
       {std::string("{kl: " + kl + "}"), "{kl: " + kl + ", activity: {from: input, inputs: x, expression: mean(x)}}",
        std::string("{activity: {from: mean, expression: '0.3 * mean(square(x)) + mean(abs(x), axis=1)'}}")}) {
    for (const int micro_batches : {1, 2}) {
      CAPTURE(added, micro_batches);
      check_slopes(job_of(added).training(samples, micro_batches), data.batch(), 4e-3f);
    }
  }
}

TEST_CASE("the samples of a loss over the whole batch may depend on each other", "[add_loss]") {
  Samples data;
  const TestJob job = job_of(
      "{pairs: {from: mean, whole_batch: true, expression: 'mean(abs(x[:, None] - x[None, :]), axis=(1, 2))'}, "
      "largest: {from: mean, whole_batch: true, expression: 'max(x)'}}");
  const Results results = run(job.evaluation(samples), data);
  double sum = 0, largest = -1e9;
  for (std::int64_t i = 0; i < samples; ++i) {
    for (int unit = 0; unit < 3; ++unit) {
      largest = std::max(largest, dense(results, "mean", data, i, unit));
      for (std::int64_t other = 0; other < samples && i != 4; ++other) {
        sum += std::abs(dense(results, "mean", data, i, unit) - dense(results, "mean", data, other, unit));
      }
    }
  }
  CHECK(results.values.at("pairs_loss") == Approx(sum / (3 * samples) / (samples - 1)));
  CHECK(results.values.at("largest_loss") == Approx(largest));
  check_slopes(job.training(samples), data.batch(), 4e-3f);
  const TestJob products = job_of(
      "{pairs: {from: [mean, spread], inputs: [a, b], whole_batch: true, expression: "
      "'logsumexp(a @ transpose(b), axis=-1) - sum(a * b, axis=-1) + mean(einsum(\"ik,jk->ij\", a, a), axis=0)'}}");
  check_slopes(products.training(samples), data.batch(), 4e-3f);
}

namespace {

// A job whose only output has no loss, and random classes for its targets.
struct OfClasses {
  TestJob job;
  std::vector<std::int32_t> classes{2, 0, 2, 1, 0, 0};

  explicit OfClasses(const std::string& added)
      : job(job_of(added, "layers: [{dense: {name: mean, units: 3}}]", "none")) {
    job.spec.outputs[0].metrics.clear();
    job.spec.outputs[0].target = {3, {}};
  }
  Batch batch(Samples& data) {
    Batch batch = data.batch();
    batch.targets = {view_of(classes)};
    return batch;
  }
};

}  // namespace

TEST_CASE("an added loss reads targets, of an output without a loss, too", "[add_loss]") {
  Samples data;
  OfClasses of(
      "{alike: {from: mean, whole_batch: true, weight: 0.5, expression: "
      "'sum(square(x), axis=1) * sum(y_true @ transpose(y_true), axis=1)'}, "
      "own: {from: mean, expression: 'sum(x * y_true, axis=-1)'}}");
  const Program program = of.job.evaluation(samples);
  CHECK(program.target_encodings.at(0) == TargetEncoding::class_number);
  const Results results = run(program, of.batch(data));
  double alike = 0, own = 0;
  for (std::size_t i = 0; i < samples; ++i) {
    if (i == 4) continue;
    double squares = 0;
    for (int unit = 0; unit < 3; ++unit) {
      const double value = dense(results, "mean", data, static_cast<std::int64_t>(i), unit);
      squares += value * value;
      if (unit == of.classes[i]) own += value;
    }
    alike += squares * static_cast<double>(std::ranges::count(of.classes, of.classes[i]));
  }
  CHECK(results.values.size() == 3);
  CHECK(results.values.at("alike_loss") == Approx(alike / 5));
  CHECK(results.values.at("own_loss") == Approx(own / 5));
  CHECK(results.values.at("loss") == Approx(0.5 * alike / 5 + own / 5));
  for (const int micro_batches : {1, 2}) {
    const OfClasses one("{own: {from: mean, expression: 'sum(square(x) * y_true, axis=-1)'}}");
    check_slopes(one.job.training(samples, micro_batches), of.batch(data), 4e-3f);
  }
  check_slopes(of.job.training(samples), of.batch(data), 4e-3f);
}

TEST_CASE("an added loss of targets is added to the loss of the same targets", "[add_loss]") {
  Samples data;
  const std::string far = "{far: {from: mean, expression: 'mean(square(x - y_true[:, :3]))'}}";
  const Results results = run(job_of(far).evaluation(samples), data),
                alone = run(job_of("{}").evaluation(samples), data);
  double sum = 0;
  for (std::int64_t i = 0; i < samples; ++i) {
    for (int unit = 0; unit < 3 && i != 4; ++unit) {
      const double target = data.targets[static_cast<std::size_t>(i * width + unit)];
      sum += std::pow(dense(results, "mean", data, i, unit) - target, 2) / 3;
    }
  }
  CHECK(results.values.at("far_loss") == Approx(sum / 5));
  CHECK(results.values.at("output_loss") == Approx(alone.values.at("loss")));
  check_slopes(job_of(far).training(samples, 2), data.batch(), 4e-3f);
}

TEST_CASE("where positions are left out, an added loss is the mean of the positions that count", "[add_loss]") {
  constexpr std::int64_t positions = 4, units = 3;
  std::vector<std::int32_t> tokens{3, 5, 1, 0, 2, 0, 0, 0, 6, 4, 2, 7, 1, 1, 0, 0, 0, 0, 0, 0, 5, 3, 0, 0};
  std::vector<std::int32_t> classes(samples * positions);
  std::mt19937 random(3);
  for (std::int32_t& c : classes) c = static_cast<std::int32_t>(random() % units);
  Samples data;
  const auto job_with = [&](const std::string& added, const std::string& loss) {
    TestJob job(
        "{layers: [{embedding: {name: words, input_dim: 8, output_dim: 5, mask_zero: true}}, {dense: {name: "
        "last, units: 3}}], add_loss: " +
            added + "}",
        "sgd", loss, "accuracy");
    job.spec.inputs[0] = {"", {positions}, {DType::int32, {}, {}}};
    job.spec.outputs[0].target = {units, {positions}};
    return job;
  };
  Batch batch = batch_of(tokens, classes, data.weights, data.numbers);
  for (const bool ignores : {false, true}) {
    for (const bool by_weight : {false, true}) {
      CAPTURE(ignores, by_weight);
      TestJob job = job_with(
          "{size: {from: words, expression: 'sum(square(x), axis=-1)'}}",
          ignores ? "{name: sparse_categorical_crossentropy, ignore_index: 1}" : "sparse_categorical_crossentropy");
      if (by_weight) job.spec.loss_reduction = LossReduction::mean_with_sample_weight;
      const Results results = run(job.evaluation(samples), batch);
      const std::vector<float>& table = results.weights.at("words/embeddings");
      double sum = 0, count = 0;
      for (std::size_t at = 0; at < tokens.size(); ++at) {
        const std::size_t sample = at / positions;
        if (sample == 4 || tokens[at] == 0 || (ignores && classes[at] == 1)) continue;
        const double weight = by_weight ? data.weights[sample] : 1;
        count += weight;
        for (std::size_t k = 0; k < 5; ++k) {
          const double value = table[static_cast<std::size_t>(tokens[at]) * 5 + k];
          sum += weight * value * value;
        }
      }
      CHECK(results.values.at("size_loss") == Approx(sum / count));
      check_slopes(job.training(samples, 2), batch, 4e-3f);
    }
  }
  const auto error = [&](const std::string& added) {
    try {
      static_cast<void>(job_with(added, "sparse_categorical_crossentropy").training(samples));
    } catch (const std::exception& mistake) {
      return std::string(mistake.what());
    }
    return std::string();
  };
  CHECK(error("{size: {from: words, whole_batch: true, expression: 'mean(x)'}}").find("the mean of positions") !=
        std::string::npos);
  const std::string without_positions = error("{size: {from: words, expression: 'mean(x, axis=1)'}}");
  CAPTURE(without_positions);
  CHECK(without_positions.find("each position of 4") != std::string::npos);
}

TEST_CASE("a missing sample changes no gradient, although the expression is not finite for its zeros", "[add_loss]") {
  Samples data;
  const TestJob job =
      job_of("{far: {from: [input, mean], inputs: [x, m], expression: 'mean(0.01 * m / square(x[:, :3]))'}}");
  check_slopes(job.training(samples), data.batch(), 4e-3f);
}

TEST_CASE("mistakes in added losses are reported", "[add_loss]") {
  const std::pair<std::string, std::string> cases[] = {
      {"{kl: {from: men, expression: mean(x)}}", "add_loss: there is no layer 'men'; did you mean 'mean'"},
      {"{kl: {from: [mean, spread], expression: mean(x)}}", "`inputs` must name the 2 inputs of the expression"},
      {"{kl: {from: mean, expression: mean(x + y)}}", "column 10 of the expression: 'y' is unknown"},
      {"{kl: {from: [mean, spread], inputs: [m, v], expression: mean(m)}}", "the expression does not use 'v'"},
      {"{kl: {from: [mean, spread], inputs: [mu, sigma], expression: mean(mu + sgima)}}",
       "the expression does not use 'sigma'; did you mean it by 'sgima'?"},
      {"{val_kl: {from: mean, expression: mean(x)}}", "does not begin with 'val'"},
      {"{kl: {from: mean, expression: '1 + 1'}}", "the expression does not use 'x'"},
      {"{output: {from: mean, expression: mean(x)}}", "is not 'output'"},
      {"{a b: {from: mean, expression: mean(x)}}", "a name consists of letters"},
      {"{kl: {expression: mean(x)}}", "from"},
      {"{kl: {from: mean, inputs: y_true, expression: mean(y_true)}}", "'y_true' are the targets"},
      {"{kl: {from: mean, targets: size, expression: mean(x)}}", "the expression does not use y_true"},
      {"{kl: {from: mean, targets: size, expression: mean(x - y_true)}}",
       "the model has one output, which has no name"},
  };
  for (const auto& [added, message] : cases) {
    CAPTURE(added, error_of(added));
    CHECK(error_of(added).find(message) != std::string::npos);
  }
  const std::string several = "layers: [{dense: {name: a, units: 3}}, {dense: {name: b, units: 3}}], outputs: [a, b]";
  CHECK(error_of("{kl: {from: a, expression: mean(x - y_true)}}", several)
            .find("set the output whose targets they are") != std::string::npos);
  CHECK(error_of("{kl: {from: a, targets: bb, expression: mean(x - y_true)}}", several)
            .find("the model has no output 'bb'; did you mean 'b'?") != std::string::npos);
  CHECK(error_of("{kl: {from: mean, expression: mean(x)}}", layers, "none").find("a metric needs the targets") !=
        std::string::npos);
  CHECK(error_of("{}", layers, "none", false).find("nothing trains the network") != std::string::npos);
  const std::string ends_in_softmax = "layers: [{dense: {name: last, units: 4, activation: softmax}}]";
  CHECK(error_of("{sure: {from: last, expression: mean(x)}}", ends_in_softmax, "categorical_crossentropy")
            .find("the loss takes over the activation at the end of 'last'") != std::string::npos);
}

TEST_CASE("the gradient of a value is refused with the names of the ops that lack second derivatives", "[add_loss]") {
  const std::string critic =
      "layers: [{dense: {name: made, units: 3}}, {relu: {name: positive}}, {dense: {name: judge, units: 1}}, {dense: "
      "{name: last, from: positive, units: 4}}]";
  const auto message = [&](const std::string& from, const std::string& call) {
    return error_of("{gp: {from: " + from + ", inputs: [i, c], expression: 'square(norm(" + call + ", axis=1) - 1)'}}",
                    critic);
  };
  const std::string refused = message("[made, judge]", "gradient(c, i)");
  CAPTURE(refused);
  CHECK(refused.find("column 13 of the expression: there is no function 'gradient', since its result would have to be "
                     "differentiated again: the ops through which 'c' depends on 'i' have no second derivatives "
                     "(activation, dense). Instead of the gradient penalty of WGAN-GP, bound the slopes of the critic "
                     "by the layer spectral_normalization") != std::string::npos);
  CHECK(message("[positive, judge]", "tf.gradients(c, i)").find("no second derivatives (dense).") != std::string::npos);
  CHECK(message("[last, judge]", "grad(c, i)").find("grad(): 'c' does not depend on 'i'") != std::string::npos);
  for (const char* call : {"i * grad(c, c)", "grad(c, i)"}) {
    const std::string same = message("[judge, judge]", call);
    CAPTURE(same);
    CHECK(same.find("grad(): 'c' and '") != std::string::npos);
    CHECK(same.find("' are the same value, so that its gradient is 1") != std::string::npos);
  }
  CHECK(message("[last, judge]", "gradient('c', 'i')").find("does not depend on") == std::string::npos);
  CHECK(message("[made, judge]", "gradient(sum(c), i)").find("no op (dense, conv2d, elementwise, ...) has second ") !=
        std::string::npos);
}

}  // namespace trainctl::added_loss_test
