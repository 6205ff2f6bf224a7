// Compares the updates of players with those that are computed by hand in float64.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/graph/ops/elementwise/random_numbers.h"
#include "test/catch.h"
#include "test/core/program/job.h"
#include "test/core/program/slopes.h"

namespace trainctl::players_test {
namespace {

constexpr std::int64_t samples = 5;

// The judge has one layer, which it uses for real values and for those that `make` computes from noise.
const std::string network = R"({inputs: [real, noise], layers: [
  {dense: {name: make, from: noise, units: 2}},
  {dense: {name: judge, from: real, units: 1}},
  {dense: {name: judge, from: make, units: 1}},
  {dense: {name: reader, from: real, units: 2}}],
  add_loss: {
    discriminator: {from: [judge@1, judge@2], inputs: [r, f], expression: 'softplus(-r) + softplus(f)'},
    fool: {from: judge@2, expression: softplus(-x), weight: 0.5}}})";

ProgramSpec::Player player(const std::string& name, const std::vector<std::string>& losses,
                           const std::vector<std::string>& trains, const std::string& optimizer, double rate = 1,
                           int steps = 1) {
  Reader reader;
  ProgramSpec::Player made{.name = name, .rate = rate, .steps = steps};
  for (const std::string& loss : losses) made.losses.push_back({loss, {}});
  for (const std::string& pattern : trains) made.trains.push_back({pattern, {}});
  read_choice(optimizer_choices(), parse_yaml(optimizer, "", ".", reader), reader, made.optimizer);
  reader.throw_if_failed();
  return made;
}

TestJob job_of(const std::string& text = network) {
  TestJob job(text, "sgd", "mse", "mean_absolute_error");
  job.spec.inputs = {{"real", {2}, {}}, {"noise", {3}, {}}};
  job.spec.outputs[0].target.shape = {2};
  job.spec.players = {
      player("discriminator", {"discriminator"}, {"judge"}, "{name: sgd, momentum: 0.9}", 1, 2),
      player("generator", {"fool"}, {"ma*"}, "adam", 0.25),
      player("reader", {"output"}, {"reader"}, "sgd", 0.5),
  };
  return job;
}

struct Samples {
  std::vector<float> real, noise, targets, weights = std::vector<float>(samples, 1.0f);
  std::vector<std::int64_t> numbers;

  Samples() {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < samples; ++i) {
      for (int k = 0; k < 2; ++k) real.push_back(normal(random) + 1);
      for (int k = 0; k < 3; ++k) noise.push_back(normal(random));
      for (int k = 0; k < 2; ++k) targets.push_back(normal(random));
      numbers.push_back(i);
    }
  }
  Batch batch() {
    Batch batch;
    batch.inputs = {{real.data(), DType::float32, std::ssize(real)}, {noise.data(), DType::float32, std::ssize(noise)}};
    batch.targets = {{targets.data(), DType::float32, std::ssize(targets)}};
    batch.weights = {weights.data(), DType::float32, samples};
    batch.samples = {numbers.data(), DType::int64, samples};
    batch.count = samples;
    return batch;
  }
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return std::log1p(std::exp(x)); }

// The same players in float64.
struct ByHand {
  using Tensors = std::map<std::string, std::vector<double>>;
  Tensors weights, momentum, m, v;
  const Samples& data;
  int makes = 0;  // number of updates of the generator
  double discriminator_loss = 0, fool_loss = 0, reader_loss = 0;
  std::map<std::string, double> squares;  // of the gradients of the last updates, by the name of the tensor

  explicit ByHand(const Samples& d) : data(d) {}

  std::array<double, 2> made(std::int64_t i) const {
    std::array<double, 2> y{};
    for (std::size_t k = 0; k < 2; ++k) {
      y[k] = weights.at("make/bias")[k];
      for (std::size_t z = 0; z < 3; ++z) y[k] += at(data.noise, i, 3, z) * weights.at("make/kernel")[2 * z + k];
    }
    return y;
  }
  std::array<double, 2> real(std::int64_t i) const { return {at(data.real, i, 2, 0), at(data.real, i, 2, 1)}; }
  double judged(const std::array<double, 2>& x) const {
    const std::vector<double>& w = weights.at("judge/kernel");
    return x[0] * w[0] + x[1] * w[1] + weights.at("judge/bias")[0];
  }
  static double at(const std::vector<float>& values, std::int64_t i, std::size_t width, std::size_t k) {
    return values[static_cast<std::size_t>(i) * width + k];
  }

  void keep_squares(const Tensors& gradients) {
    for (const auto& [name, values] : gradients) {
      squares[name] = std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
    }
  }
  double norm() const {
    double sum = 0;
    for (const auto& [name, of_tensor] : squares) sum += of_tensor;
    return std::sqrt(sum);
  }

  void judge(double rate) {
    Tensors gradients{{"judge/kernel", {0, 0}}, {"judge/bias", {0}}};
    discriminator_loss = 0;
    for (std::int64_t i = 0; i < samples; ++i) {
      const auto x = real(i), y = made(i);
      const double r = judged(x), f = judged(y);
      discriminator_loss += (softplus(-r) + softplus(f)) / samples;
      const double dr = -sigmoid(-r) / samples, df = sigmoid(f) / samples;
      for (std::size_t k = 0; k < 2; ++k) gradients["judge/kernel"][k] += dr * x[k] + df * y[k];
      gradients["judge/bias"][0] += dr + df;
    }
    keep_squares(gradients);
    for (auto& [name, gradient] : gradients) {
      momentum[name].resize(gradient.size());
      for (std::size_t k = 0; k < gradient.size(); ++k) {
        momentum[name][k] = 0.9 * momentum[name][k] + gradient[k];
        weights[name][k] -= rate * momentum[name][k];
      }
    }
  }

  void make(double rate) {
    Tensors gradients{{"make/kernel", std::vector<double>(6)}, {"make/bias", {0, 0}}};
    fool_loss = 0;
    for (std::int64_t i = 0; i < samples; ++i) {
      const double f = judged(made(i));
      fool_loss += softplus(-f) / samples;
      for (std::size_t k = 0; k < 2; ++k) {
        const double dy = -0.5 * sigmoid(-f) / samples * weights["judge/kernel"][k];
        for (std::size_t z = 0; z < 3; ++z) gradients["make/kernel"][2 * z + k] += dy * at(data.noise, i, 3, z);
        gradients["make/bias"][k] += dy;
      }
    }
    ++makes;
    keep_squares(gradients);
    for (auto& [name, gradient] : gradients) {
      m[name].resize(gradient.size());
      v[name].resize(gradient.size());
      for (std::size_t k = 0; k < gradient.size(); ++k) {
        m[name][k] = 0.9 * m[name][k] + 0.1 * gradient[k];
        v[name][k] = 0.999 * v[name][k] + 0.001 * gradient[k] * gradient[k];
        const double mean = m[name][k] / (1 - std::pow(0.9, makes)), square = v[name][k] / (1 - std::pow(0.999, makes));
        weights[name][k] -= rate * mean / (std::sqrt(square) + 1e-7);
      }
    }
  }

  void read(double rate) {
    Tensors gradients{{"reader/kernel", std::vector<double>(4)}, {"reader/bias", {0, 0}}};
    reader_loss = 0;
    for (std::int64_t i = 0; i < samples; ++i) {
      const auto x = real(i);
      for (std::size_t k = 0; k < 2; ++k) {
        const std::vector<double>& w = weights["reader/kernel"];
        const double error = x[0] * w[k] + x[1] * w[2 + k] + weights["reader/bias"][k] - at(data.targets, i, 2, k);
        reader_loss += error * error / (2 * samples);
        for (std::size_t j = 0; j < 2; ++j) gradients["reader/kernel"][2 * j + k] += error * x[j] / samples;
        gradients["reader/bias"][k] += error / samples;
      }
    }
    keep_squares(gradients);
    for (auto& [name, gradient] : gradients) {
      for (std::size_t k = 0; k < gradient.size(); ++k) weights[name][k] -= rate * gradient[k];
    }
  }
};

void check_close(const std::vector<NamedTensor>& tensors, const std::string& prefix, const ByHand::Tensors& expected,
                 double margin = 3e-6) {
  const auto found = by_name(tensors);
  for (const auto& [name, values] : expected) {
    CAPTURE(prefix + name);
    const View& view = found.at(prefix + name)->view;
    REQUIRE(view.count == std::ssize(values));
    for (std::size_t k = 0; k < values.size(); ++k) CHECK(view.as<float>()[k] == Approx(values[k]).margin(margin));
  }
}

std::map<std::string, double> values_of(const Program& program, const StepResult& result) {
  std::map<std::string, double> values;
  for (const MetricResult& of : program.results) values[of.name] = of.of(result.sums, result.count);
  return values;
}

// An engine with random weights, which the reference has, too.
struct Trainer {
  std::unique_ptr<Backend> backend = make_cpu_backend({});
  std::unique_ptr<Communicator> communicator = solo_communicator();
  KernelChoices choices;
  Engine engine;

  Trainer(const std::vector<Program>& programs, ByHand& reference)
      : engine(*backend, *communicator, compile(programs, *backend, choices)) {
    std::mt19937 random(22);
    draw_weights(engine, random);
    for (const NamedTensor& tensor : engine.weights()) {
      reference.weights[tensor.name].assign(tensor.view.as<float>(), tensor.view.as<float>() + tensor.view.count);
    }
    engine.upload();
  }
};

}  // namespace

TEST_CASE("players update their own weights in turn, as computed by hand", "[players]") {
  Samples data;
  const TestJob job = job_of();
  const Program training = job.training(samples), evaluation = job.evaluation(samples);
  ByHand reference(data);
  Trainer trainer({training, evaluation}, reference);
  Engine& engine = trainer.engine;
  constexpr double rate = 0.2;
  StepResult result;
  for (int step = 0; step < 4; ++step) {
    CAPTURE(step);
    reference.judge(rate);
    reference.judge(rate);
    reference.make(0.25 * rate);
    reference.read(0.5 * rate);
    engine.run(0, data.batch(), {.learning_rate = rate, .step = step}, result);
    const std::map<std::string, double> values = values_of(training, result);
    CHECK(result.gradient_norm == Approx(reference.norm()));
    CHECK(values.at("discriminator_loss") == Approx(reference.discriminator_loss));  // of its last update
    CHECK(values.at("fool_loss") == Approx(reference.fool_loss));
    CHECK(values.at("generator_loss") == Approx(0.5 * reference.fool_loss));
    CHECK(values.at("reader_loss") == Approx(reference.reader_loss));
    CHECK(values.at("output_loss") == Approx(reference.reader_loss));
    CHECK(values.at("loss") ==
          Approx(reference.discriminator_loss + 0.5 * reference.fool_loss + reference.reader_loss));
    engine.download();
    check_close(engine.weights(), "", reference.weights);
    check_close(engine.state(), "momentum/", reference.momentum);
    check_close(engine.state(), "m/", reference.m);
    check_close(engine.state(), "v/", reference.v);
  }
  CHECK(engine.weights().size() == 6);
  CHECK(engine.state().size() == 2 + 4);

  engine.run(1, data.batch(), {}, result);
  const std::map<std::string, double> values = values_of(evaluation, result);
  reference.judge(0);
  reference.make(0);
  reference.read(0);
  CHECK(values.at("discriminator_loss") == Approx(reference.discriminator_loss));
  CHECK(values.at("generator_loss") == Approx(0.5 * reference.fool_loss));
  CHECK(values.at("reader_loss") == Approx(reference.reader_loss));
}

TEST_CASE("losses of several players read the targets of an output without a loss", "[players]") {
  std::string text = network;
  const auto replace = [&](const std::string& from, const std::string& to) {
    REQUIRE(text.find(from) != std::string::npos);
    text.replace(text.find(from), from.size(), to);
  };
  replace("softplus(-x), weight: 0.5", "'softplus(-x) + 0 * y_true', weight: 0.5");
  replace("fool:", "reading: {from: reader, expression: 'mean(square(x - y_true), axis=-1)'}, fool:");
  TestJob job(text, "sgd", "none", "");
  const TestJob with_output_loss = job_of();
  job.spec.inputs = with_output_loss.spec.inputs;
  job.spec.outputs[0].target.shape = {2};
  job.spec.players = with_output_loss.spec.players;
  job.spec.players[2].losses = {{"reading", {}}};
  Samples data;
  const Program training = job.training(samples);
  ByHand reference(data);
  Trainer trainer({training}, reference);
  Engine& engine = trainer.engine;
  StepResult result;
  for (int step = 0; step < 2; ++step) {
    reference.judge(0.2);
    reference.judge(0.2);
    reference.make(0.05);
    reference.read(0.1);
    engine.run(0, data.batch(), {.learning_rate = 0.2, .step = step}, result);
  }
  const std::map<std::string, double> values = values_of(training, result);
  CHECK(values.at("generator_loss") == Approx(0.5 * reference.fool_loss));
  CHECK(values.at("reading_loss") == Approx(reference.reader_loss));
  CHECK(values.at("loss") == Approx(reference.discriminator_loss + 0.5 * reference.fool_loss + reference.reader_loss));
  engine.download();
  check_close(engine.weights(), "", reference.weights);
}

TEST_CASE("after an update that is not finite, the later updates of the step are skipped", "[players]") {
  Samples data;
  data.noise[4] = std::numeric_limits<float>::quiet_NaN();  // the reader does not read the noise
  TestJob job = job_of();
  const bool reader_is_first = GENERATE(false, true);
  CAPTURE(reader_is_first);
  if (reader_is_first) std::rotate(job.spec.players.begin(), job.spec.players.end() - 1, job.spec.players.end());
  const Program training = job.training(samples);
  ByHand reference(data);
  Trainer trainer({training}, reference);
  StepResult result;
  trainer.engine.run(0, data.batch(), {.learning_rate = 0.2, .step = 0}, result);
  CHECK(result.not_finite);
  trainer.engine.download();
  if (reader_is_first) reference.read(0.1);
  check_close(trainer.engine.weights(), "", reference.weights);
  for (const NamedTensor& tensor : trainer.engine.state()) {
    CAPTURE(tensor.name);
    const float* const values = tensor.view.as<float>();
    CHECK(std::all_of(values, values + tensor.view.count, [](float value) { return value == 0; }));
  }
}

TEST_CASE("a norm that is not finite is the cause, although the later updates of the step are skipped", "[players]") {
  Samples data;
  // The loss is 0, and its gradient exceeds float32's range.
  const std::string steep = "'3e38 * (1e3 * x - stop_gradient(1e3 * x))'";
  std::string text = network;
  const std::string loss = "softplus(-x)";
  const bool is_generator = GENERATE(true, false);
  CAPTURE(is_generator);
  if (is_generator) {
    text.replace(text.find(loss), loss.size(), steep);
  } else {
    const std::string first = "'softplus(-r) + softplus(f)'";
    text.replace(text.find(first), first.size(), "'3e38 * (r - stop_gradient(r)) + 3e38 * (f - stop_gradient(f))'");
  }
  TestJob job = job_of(text);
  const Program training = job.training(samples);
  ByHand reference(data);
  Trainer trainer({training}, reference);
  StepResult result;
  trainer.engine.run(0, data.batch(), {.learning_rate = 0.2, .step = 0}, result);
  CHECK_FALSE(result.not_finite);
  CHECK_FALSE(std::isfinite(result.gradient_norm));
  // Once a loss is not finite either, it is the cause if it is that of the first update.
  data.noise[4] = std::numeric_limits<float>::quiet_NaN();  // the discriminator comes first and reads the noise
  trainer.engine.run(0, data.batch(), {.learning_rate = 0.2, .step = 0}, result);
  CHECK(result.not_finite);
}

TEST_CASE("a player reads the weights that the players before it have changed, also as bfloat16", "[players]") {
  Samples data;
  TestJob job = job_of();
  job.spec.compute = DType::bfloat16;
  const Program training = job.training(samples);
  ByHand reference(data);
  Trainer trainer({training}, reference);
  Engine& engine = trainer.engine;
  constexpr double rate = 4;  // so that a step changes the weights by much more than they are rounded
  StepResult result;
  reference.judge(rate);
  reference.judge(rate);
  engine.run(0, data.batch(), {.learning_rate = rate, .step = 0}, result);
  engine.download();
  const ByHand::Tensors judge{{"judge/kernel", reference.weights["judge/kernel"]},
                              {"judge/bias", reference.weights["judge/bias"]}};
  check_close(engine.weights(), "", judge, 0.03);
}

TEST_CASE("all programs of players have one layout, with a bucket for each player", "[players]") {
  const Program program = job_of().training(samples);
  const ParameterLayout& flat = program.flat;
  REQUIRE(flat.buckets.size() == 3);
  CHECK(flat.buckets[0].player == "discriminator");
  CHECK(flat.buckets[0].state_names == std::vector<std::string>{"momentum"});
  CHECK(flat.buckets[1].state_names == std::vector<std::string>{"m", "v"});
  CHECK(flat.buckets[2].state_names.empty());
  CHECK(flat.buckets[1].offset == flat.buckets[0].offset + flat.buckets[0].count);
  CHECK(program.step.players.size() == 4);
}

TEST_CASE("an update computes only what its losses need, with random numbers of its own", "[players]") {
  TestJob job = job_of(R"({inputs: [real, noise], layers: [
    {lambda: {name: random, from: noise, expression: x + random_normal(x)}},
    {dense: {name: make, units: 2}},
    {dense: {name: judge, from: real, units: 1}},
    {dense: {name: judge, from: make, units: 1}},
    {dense: {name: reader, from: real, units: 2}}],
    add_loss: {
      discriminator: {from: [judge@1, judge@2], inputs: [r, f], expression: 'softplus(-r) + softplus(f)'},
      fool: {from: judge@2, expression: softplus(-x), weight: 0.5}}})");
  const Program program = job.training(samples);
  std::vector<std::string> layers;  // of the third update's forward pass
  std::set<std::uint64_t> seeds;
  int update = 0;
  for (const ScheduleItem& item : program.schedule) {
    const Segment& segment = program.segment(item.segment);
    for (const Op& op : segment.ops) {
      if (const auto* numbers = op.get_if<RandomNumbers>()) seeds.insert(numbers->seed);
      if (update == 2 && segment.phase == Phase::forward) layers.push_back(op.name);
    }
    if (segment.phase == Phase::update) ++update;
  }
  CHECK(update == 4);
  CHECK(seeds.size() == 3);  // two updates of the discriminator, and one of the generator
  CHECK(std::ranges::find(layers, "judge@2") != layers.end());
  CHECK(std::ranges::find(layers, "judge") == layers.end());
  CHECK(std::ranges::find(layers, "reader") == layers.end());
}

TEST_CASE("players may minimize the same loss, and train all layers that it depends on", "[players]") {
  Samples data;
  TestJob job = job_of();
  job.spec.players[0].losses.push_back({"fool", {}});
  const Program training = job.training(samples), evaluation = job.evaluation(samples);
  const ProgramRun trained = run_program(training, data.batch()), evaluated = run_program(evaluation, data.batch());
  REQUIRE(trained.values.size() == evaluated.values.size());
  for (std::size_t i = 0; i < trained.values.size(); ++i) {  // the rate of this step is 0
    CAPTURE(training.results[i].name);
    CHECK(training.results[i].name == evaluation.results[i].name);
    CHECK(trained.values[i] == Approx(evaluated.values[i]));
  }
}

TEST_CASE("mistakes in players are errors", "[players]") {
  const auto says = [](auto change, const std::string& text) {
    TestJob job = job_of();
    change(job.spec.players);
    CAPTURE(job.error(samples));
    CHECK(job.error(samples).find(text) != std::string::npos);
  };
  using Players = std::vector<ProgramSpec::Player>;
  CHECK(job_of().error(samples).empty());
  says([](Players& players) { players[1].losses[0].name = "fol"; },
       "player 'generator': the model has no loss 'fol'; did you mean 'fool'?");
  says([](Players& players) { players.pop_back(); }, "no player minimizes the loss 'output'");
  says(
      [](Players& players) {
        players[1].trains.push_back({"judge", {}});
      },
      "two players, 'discriminator' and 'generator', train the layer 'judge'");
  says(
      [](Players& players) {
        players[1].trains.push_back({"mok*", {}});
      },
      "player 'generator': no layer with weights that train is named 'mok*'");
  says(
      [](Players& players) {
        players[0].losses[0].name = "fool";
        players[1].losses[0].name = "discriminator";
        players[2].losses.push_back({"output", {}});
        players[0].trains.push_back({"reader", {}});
        players.pop_back();
        players[1].losses.push_back({"output", {}});
      },
      "player 'discriminator' trains 'reader/");
}

}  // namespace trainctl::players_test
