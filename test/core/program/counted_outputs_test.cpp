// Compares the losses and gradients of outputs that leave out different positions with values in float64.
#include <cmath>
#include <map>
#include <random>

#include "core/metrics/choices.h"
#include "core/tensor/sample_numbers.h"
#include "test/catch.h"
#include "test/core/program/job.h"
#include "test/core/program/slopes.h"

namespace trainctl::counted_outputs_test {
namespace {

constexpr std::int64_t samples = 6, positions = 4, features = 3, classes = 5;
constexpr std::int32_t ignored = 1;

// Of each sample, `words` leaves out the positions whose target is 1, `tags` those that are padding, and `kind` none.
const std::string network = R"(
outputs: [kind, words, tags]
layers:
  - masking: {name: shown}
  - dense: {name: tags, units: 2}
  - lambda: {name: all, from: input, expression: 1 * x}
  - dense: {name: words, units: 5}
  - flatten: {from: all}
  - dense: {name: kind, units: 3}
)";

struct Job : TestJob {
  explicit Job(const std::string& more = "") : TestJob(network + more, "sgd") {
    spec.inputs[0].sample = {positions, features};
    ProgramSpec::Output kind = spec.outputs[0];
    kind.name = "kind";
    kind.weight = 0.5;
    kind.target.classes = 3;
    read_loss("{name: sparse_categorical_crossentropy, from_logits: true}", kind);
    ProgramSpec::Output words = kind, tags = kind;
    words.name = "words";
    words.weight = 2;
    words.target.classes = classes;
    words.target.shape = {positions};
    read_loss("{name: sparse_categorical_crossentropy, from_logits: true, ignore_index: 1}", words);
    tags.name = "tags";
    tags.weight = 1;
    tags.target = {};
    tags.target.shape = {positions, 2};
    read_loss("mse", tags);
    tags.metrics.clear();
    spec.outputs = {kind, words, tags};
  }
  static void read_loss(const std::string& loss, ProgramSpec::Output& output) {
    Reader reader;
    read_choice(loss_choices(), parse_yaml(loss, "", ".", reader), reader, output.loss);
    reader.throw_if_failed();
  }
};

// Random samples. Sample 2 has weight 0, and sample 4 is missing.
struct Samples {
  std::vector<float> x, tags, weights;
  std::vector<std::int32_t> kind, words;
  std::vector<std::int64_t> numbers;

  explicit Samples(bool leaves_all_words = false) {
    std::mt19937 random(11);
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < samples; ++i) {
      for (std::int64_t p = 0; p < positions; ++p) {
        const bool padding = p > i % positions;
        for (std::int64_t k = 0; k < features; ++k) x.push_back(padding ? 0.0f : normal(random));
        tags.push_back(normal(random));
        tags.push_back(normal(random));
        words.push_back(leaves_all_words ? ignored : static_cast<std::int32_t>(random() % classes));
      }
      kind.push_back(static_cast<std::int32_t>(random() % 3));
      weights.push_back(i == 2 || i == 4 ? 0.0f : 0.5f + 0.25f * static_cast<float>(i));
      numbers.push_back(i == 4 ? no_sample : i);
    }
  }
  Batch batch() {
    Batch batch;
    batch.inputs = {{x.data(), DType::float32, std::ssize(x)}};
    batch.targets = {{kind.data(), DType::int32, samples},
                     {words.data(), DType::int32, std::ssize(words)},
                     {tags.data(), DType::float32, std::ssize(tags)}};
    batch.weights = {weights.data(), DType::float32, samples};
    batch.samples = {numbers.data(), DType::int64, samples};
    batch.count = samples;
    return batch;
  }
};

// The weights after two steps from random ones.
std::map<std::string, std::vector<float>> weights_after(const TestJob& job, const Batch& batch) {
  const auto backend = make_cpu_backend({.threads = 2});
  const auto communicator = solo_communicator();
  KernelChoices choices;
  Engine engine(*backend, *communicator, compile({job.training(samples)}, *backend, choices));
  std::mt19937 random(31);
  draw_weights(engine, random);
  engine.upload();
  StepResult result;
  for (const std::int64_t step : {0, 1}) engine.run(0, batch, {.learning_rate = 0.5, .step = step}, result);
  engine.download();
  std::map<std::string, std::vector<float>> weights;
  for (const NamedTensor& tensor : engine.weights()) {
    weights[tensor.name].assign(tensor.view.as<float>(), tensor.view.as<float>() + tensor.view.count);
  }
  return weights;
}

double cross_entropy(const float* logits, std::int64_t width, std::int32_t target) {
  double sum = 0;
  for (std::int64_t c = 0; c < width; ++c) sum += std::exp(double{logits[c]});
  return std::log(sum) - logits[target];
}

// A mean of losses over the positions that count.
struct Mean {
  double sum = 0, count = 0, weight = 0;
  void add(double loss, double sample_weight, bool by_weight) {
    sum += sample_weight * loss;
    count += by_weight ? sample_weight : 1;
    weight += sample_weight;
  }
  double value() const { return count == 0 ? 0 : sum / count; }
};

// The means of the outputs' losses, and of the accuracy of `words`, computed from the predictions.
struct Expected {
  Mean kind, words, tags;
  double right = 0;

  Expected(const Samples& data, const std::vector<std::vector<float>>& predictions, bool by_weight) {
    for (std::int64_t i = 0; i < samples; ++i) {
      if (data.numbers[index(i)] == no_sample) continue;
      const double weight = data.weights[index(i)];
      kind.add(cross_entropy(&predictions[0][index(3 * i)], 3, data.kind[index(i)]), weight, by_weight);
      for (std::int64_t p = 0; p < positions; ++p) {
        const std::size_t at = index(i * positions + p);
        if (data.words[at] != ignored) {
          const float* scores = &predictions[1][at * classes];
          words.add(cross_entropy(scores, classes, data.words[at]), weight, by_weight);
          right += std::max_element(scores, scores + classes) - scores == data.words[at] ? weight : 0;
        }
        if (p > i % positions) continue;
        double squares = 0;
        for (std::size_t k = 0; k < 2; ++k) {
          squares += std::pow(double{predictions[2][2 * at + k]} - data.tags[2 * at + k], 2) / 2;
        }
        tags.add(squares, weight, by_weight);
      }
    }
  }
  double loss() const { return 0.5 * kind.value() + 2 * words.value() + tags.value(); }

 private:
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
};

}  // namespace

TEST_CASE("outputs that leave out different positions have means over their own positions", "[counts]") {
  for (const bool leaves_all_words : {false, true}) {
    for (const bool by_weight : {false, true}) {
      CAPTURE(leaves_all_words, by_weight);
      Job job;
      if (by_weight) job.spec.loss_reduction = LossReduction::mean_with_sample_weight;
      Samples data(leaves_all_words);
      const Program program = job.evaluation(samples);
      const auto backend = make_cpu_backend({});
      const auto communicator = solo_communicator();
      KernelChoices choices;
      Engine engine(*backend, *communicator, compile({program}, *backend, choices));
      std::mt19937 random(22);
      draw_weights(engine, random);
      engine.upload();
      StepResult result;
      engine.run(0, data.batch(), {}, result);
      std::vector<std::vector<float>> predictions;
      for (const TensorId id : program.step.predictions) {
        std::vector<std::byte> bytes;
        engine.read_tensor(0, id, bytes);
        predictions.emplace_back(bytes.size() / sizeof(float));
        std::memcpy(predictions.back().data(), bytes.data(), bytes.size());
      }
      const Expected expected(data, predictions, by_weight);
      std::map<std::string, double> values;
      for (const MetricResult& of : program.results) values[of.name] = of.of(result.sums, result.count);
      CHECK(values.at("kind_loss") == Approx(expected.kind.value()));
      CHECK(values.at("words_loss") == Approx(expected.words.value()));
      CHECK(values.at("tags_loss") == Approx(expected.tags.value()));
      CHECK(values.at("loss") == Approx(expected.loss()));
      if (leaves_all_words) {
        CHECK(std::isnan(values.at("words_accuracy")));
      } else {
        CHECK(values.at("words_accuracy") == Approx(expected.right / expected.words.weight));
      }
      for (const int micro_batches : {1, 2, 3}) {
        const ProgramRun training = run_program(job.training(samples, micro_batches), data.batch());
        CHECK(training.values[0] == Approx(expected.loss()));
      }
    }
  }
}

TEST_CASE("gradients of outputs that leave out different positions are the slopes of the sum of their means",
          "[counts]") {
  for (const bool leaves_all_words : {false, true}) {
    for (const bool by_weight : {false, true}) {
      CAPTURE(leaves_all_words, by_weight);
      Job job;
      if (by_weight) job.spec.loss_reduction = LossReduction::mean_with_sample_weight;
      Samples data(leaves_all_words);
      for (const int micro_batches : {1, 2, 3}) {
        check_slopes(job.training(samples, micro_batches), data.batch(), 4e-3f);
      }
    }
  }
}

TEST_CASE("expressions, added losses and penalties have their own means beside outputs that leave out positions",
          "[counts]") {
  const std::string added = "add_loss: {near: {from: kind, expression: 'mean(square(x), axis=-1)', weight: 0.25}}\n";
  Job job(added);
  Job::read_loss("{expression: 'mean(square(y_true - y_pred), axis=-1)'}", job.spec.outputs[2]);
  const Job plain;
  Samples data;
  const ProgramRun expression = run_program(job.evaluation(samples), data.batch());
  const ProgramRun library = run_program(plain.evaluation(samples), data.batch());
  for (const std::size_t output : {1, 2, 3}) CHECK(expression.values[output] == Approx(library.values[output]));
  CHECK(expression.values[0] == Approx(library.values[0] + 0.25 * expression.values[4]));
  for (const int micro_batches : {1, 3}) check_slopes(job.training(samples, micro_batches), data.batch(), 4e-3f);
}

TEST_CASE("players refuse outputs that leave out different positions, in every dtype", "[counts]") {
  for (const DType compute : {DType::float32, DType::bfloat16}) {
    Job job;
    job.spec.compute = compute;
    job.spec.players.resize(1);
    CHECK(job.error(samples).find("the outputs 'kind' and 'words' leave out different positions of a sample") !=
          std::string::npos);
  }
}

TEST_CASE("players learn from the positions that their outputs have in common what one optimizer learns", "[counts]") {
  const std::string text = R"(
outputs: [words, tags]
layers:
  - masking: {name: shown}
  - dense: {name: tags, units: 2}
  - dense: {name: words, from: shown, units: 5}
)";
  const Job other;
  TestJob job(text, "sgd");
  job.spec.inputs = other.spec.inputs;
  job.spec.outputs = {other.spec.outputs[1], other.spec.outputs[2]};
  Job::read_loss("{name: sparse_categorical_crossentropy, from_logits: true}", job.spec.outputs[0]);
  TestJob of_players = job;
  of_players.spec.model = &of_players.model;
  for (const char* name : {"words", "tags"}) {
    of_players.spec.players.push_back(
        {.name = name, .losses = {{name, {}}}, .trains = {{name, {}}}, .optimizer = job.spec.optimizer});
  }
  Samples data;
  Batch batch = data.batch();
  batch.targets.erase(batch.targets.begin());
  for (const DType compute : {DType::float32, DType::bfloat16}) {
    CAPTURE(name_of(compute));
    job.spec.compute = of_players.spec.compute = compute;
    const auto expected = weights_after(job, batch), found = weights_after(of_players, batch);
    REQUIRE(found.size() == 4);
    for (const auto& [name, values] : expected) {
      CAPTURE(name);
      for (std::size_t i = 0; i < values.size(); ++i) CHECK(found.at(name)[i] == Approx(values[i]).epsilon(1e-6));
    }
  }
}

TEST_CASE("outputs that leave out different positions learn in bfloat16 nearly what they learn in float32",
          "[counts]") {
  for (const bool leaves_all_words : {false, true}) {
    Job job;
    Samples data(leaves_all_words);
    const auto exact = weights_after(job, data.batch());
    job.spec.compute = DType::bfloat16;
    const auto rounded = weights_after(job, data.batch());
    REQUIRE(rounded.size() == 6);
    for (const auto& [name, values] : exact) {
      CAPTURE(leaves_all_words, name);
      for (std::size_t i = 0; i < values.size(); ++i) CHECK(std::abs(rounded.at(name)[i] - values[i]) < 0.02);
    }
  }
}

TEST_CASE("a smaller last micro-batch counts in the gradients of outputs that leave out different positions",
          "[counts]") {
  const Job job;
  Samples data;
  Reader reader;
  Program program = training_program(job.spec, {.samples = 4, .count = 1, .rest = 2}, reader);
  reader.throw_if_failed();
  const ProgramRun whole = run_program(job.training(samples), data.batch());
  const ProgramRun parts = run_program(program, data.batch());
  CHECK(parts.values[0] == Approx(whole.values[0]));
  REQUIRE(parts.gradients.size() >= whole.gradients.size());
  for (const FlatEntry& entry : program.flat.parameters) {
    for (std::int64_t i = entry.offset; i < entry.offset + entry.count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      CHECK(parts.gradients[at] == Approx(whole.gradients[at]).epsilon(1e-4).margin(1e-5));
    }
  }
}

TEST_CASE("positions that depend on parameters cannot be counted before the forward pass", "[counts]") {
  TestJob job(R"(
outputs: [words, tags]
layers:
  - dense: {units: 4, activation: relu}
  - masking: {name: shown}
  - dense: {name: tags, units: 2}
  - dense: {name: words, from: input, units: 5}
)",
              "sgd");
  const Job other;
  job.spec.inputs = other.spec.inputs;
  job.spec.outputs = {other.spec.outputs[1], other.spec.outputs[2]};
  CHECK(job.error(samples).find("the positions of 'tags' are counted before the forward pass, but its mask depends on "
                                "the parameters of layer 'dense") != std::string::npos);
}

}  // namespace trainctl::counted_outputs_test
