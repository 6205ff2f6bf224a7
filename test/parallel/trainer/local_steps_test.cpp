// Compares local SGD with a plain computation: each replica takes momentum steps of its own on a linear network, then
// parameters and momenta are averaged, weighted by the number of samples that each replica saw.
#include "parallel/trainer/hooks/local_steps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <random>

#include "core/backend/choices.h"
#include "core/backend/cpu/cpu_backend.h"
#include "core/backend/immediate_stream.h"
#include "core/exec/engine.h"
#include "core/tensor/sample_numbers.h"
#include "parallel/health/replicas.h"
#include "parallel/mesh/axes.h"
#include "parallel/strategies/communication_check/communications.h"
#include "parallel/strategies/programs.h"
#include "parallel/trainer/initial_weights.h"
#include "test/catch.h"
#include "test/core/program/job.h"
#include "test/parallel/comm/on_threads.h"

namespace trainctl::local_steps_test {
namespace {

constexpr std::int64_t inputs = 8 * 8 * 2, classes = 3;
constexpr double rate = 0.05, momentum = 0.9;
// Shares differ by one sample; with four ranks, one of them has no sample of a batch of 3.
constexpr std::int64_t batches[] = {13, 13, 13, 3, 13, 13, 3};
constexpr int averaged_after[] = {3, 6, 7};

bool averages(int steps) {
  return std::find(std::begin(averaged_after), std::end(averaged_after), steps) != std::end(averaged_after);
}

struct Samples {
  std::vector<float> values, weights;
  std::vector<std::int32_t> targets;
  std::vector<std::int64_t> numbers;

  explicit Samples(int step) {
    std::mt19937 random(static_cast<unsigned>(40 + step));
    std::normal_distribution<float> normal;
    const std::int64_t count = batches[step];
    for (std::int64_t i = 0; i < count * inputs; ++i) values.push_back(normal(random));
    for (std::int64_t i = 0; i < count; ++i) {
      targets.push_back(static_cast<std::int32_t>(random() % classes));
      weights.push_back(i == 1 ? 0.0f : 1.0f);
      numbers.push_back(i == 1 ? skipped_sample(i) : i);
    }
  }
  Batch share(const Share& share) {
    const auto count = static_cast<std::int64_t>(targets.size());
    Batch batch;
    batch.inputs = {
        View{values.data(), DType::float32, count * inputs}.slice(share.first * inputs, share.count * inputs)};
    batch.targets = {View{targets.data(), DType::int32, count}.slice(share.first, share.count)};
    batch.weights = View{weights.data(), DType::float32, count}.slice(share.first, share.count);
    batch.samples = View{numbers.data(), DType::int64, count}.slice(share.first, share.count);
    batch.count = share.count;
    return batch;
  }
};

using Values = std::vector<double>;  // kernel [inputs][classes], then bias

// One replica of the plain computation.
struct Replica {
  Values parameters, velocity;
  double seen = 0, loss = 0;  // since the last average

  void step(const Samples& samples, const Share& share) {
    Values gradient(parameters.size());
    double count = 0;
    for (std::int64_t s = share.first; s < share.first + share.count; ++s) {
      const double weight = samples.weights[static_cast<std::size_t>(s)];
      const float* x = samples.values.data() + s * inputs;
      std::array<double, classes> logits{};
      for (std::size_t c = 0; c < classes; ++c) {
        logits[c] = parameters[inputs * classes + c];
        for (std::int64_t i = 0; i < inputs; ++i)
          logits[c] += x[i] * parameters[static_cast<std::size_t>(i) * classes + c];
      }
      const double largest = *std::max_element(logits.begin(), logits.end());
      double sum = 0;
      for (double& logit : logits) sum += logit = std::exp(logit - largest);
      const auto target = static_cast<std::size_t>(samples.targets[static_cast<std::size_t>(s)]);
      loss -= weight * std::log(logits[target] / sum);
      count += weight;
      for (std::size_t c = 0; c < classes; ++c) {
        const double slope = weight * (logits[c] / sum - (c == target ? 1 : 0));
        gradient[inputs * classes + c] += slope;
        for (std::int64_t i = 0; i < inputs; ++i) gradient[static_cast<std::size_t>(i) * classes + c] += slope * x[i];
      }
    }
    seen += count;
    for (std::size_t i = 0; i < parameters.size(); ++i) {  // without samples the gradient is 0
      velocity[i] = momentum * velocity[i] + (count == 0 ? 0 : gradient[i] / count);
      parameters[i] -= rate * velocity[i];
    }
  }
};

struct Outcome {
  std::map<std::string, Values> values;  // parameters and momenta
  Values losses;                         // mean over the steps since the last average
};

Outcome plain(int ranks, const Values& initial) {
  std::vector<Replica> replicas(static_cast<std::size_t>(ranks), {initial, Values(initial.size())});
  Outcome outcome;
  for (int step = 0; step < std::ssize(batches); ++step) {
    const Samples samples(step);
    for (int rank = 0; rank < ranks; ++rank) {
      replicas[static_cast<std::size_t>(rank)].step(samples, share_of(batches[step], replica(rank, ranks)));
    }
    if (!averages(step + 1)) continue;
    double seen = 0, loss = 0;
    for (const Replica& one : replicas) seen += one.seen, loss += one.loss;
    Values parameters(initial.size()), velocity(initial.size());
    for (const Replica& one : replicas) {
      for (std::size_t i = 0; i < initial.size(); ++i) {
        parameters[i] += one.seen / seen * one.parameters[i];
        velocity[i] += one.seen / seen * one.velocity[i];
      }
    }
    for (Replica& one : replicas) one = {parameters, velocity};
    outcome.losses.push_back(loss / seen);
  }
  const auto split = [](const Values& all) { return all.begin() + inputs * classes; };
  const Replica& any = replicas.front();
  outcome.values = {{"d/kernel", Values(any.parameters.begin(), split(any.parameters))},
                    {"d/bias", Values(split(any.parameters), any.parameters.end())},
                    {"momentum/d/kernel", Values(any.velocity.begin(), split(any.velocity))},
                    {"momentum/d/bias", Values(split(any.velocity), any.velocity.end())}};
  return outcome;
}

Outcome trained(int ranks, Values& initial) {
  Outcome outcome;
  std::mutex one_at_a_time;
  const auto run = [&](Communicator& world) {
    const TestJob job("layers: [flatten, {dense: {name: d, units: 3, activation: softmax}}]",
                      "{name: sgd, momentum: 0.9}");
    Strategy strategy{{.data = ranks}, {}, false};
    strategy.options.sync_every.value = 3;
    Reader reader;
    const RunPrograms programs(job.spec, strategy, {.training = 13, .training_last = 3}, world.rank(), reader);
    reader.throw_if_failed();
    for (const Program& program : programs.programs()) {
      require(communications_of(program).empty(), "local steps do not communicate");
    }
    const auto backend = make_cpu_backend({});
    KernelChoices choices;
    Engine engine(*backend, world, compile(programs.programs(), *backend, choices));
    initialize_weights(job.spec, 9, engine.weights());
    engine.upload();
    Values initial_values;
    for (const char* name : {"d/kernel", "d/bias"}) {
      const View view = by_name(engine.weights()).at(name)->view;
      initial_values.insert(initial_values.end(), view.as<float>(), view.as<float>() + view.count);
    }
    ImmediateStream stream;
    LocalSteps local({}, engine, world, stream);
    ReplicaCheck check(engine.weights(), world, world.rank(), stream);
    StepResult result;
    Values losses;
    for (int step = 0; step < std::ssize(batches); ++step) {
      Samples samples(step);
      const Batch batch = samples.share(share_of(batches[step], programs.rank()));
      const bool stops = step == 3 && world.rank() == ranks - 1;
      engine.run(programs.training(batches[step]), batch, {rate, step, stops}, result);
      local.add(result);
      if (!averages(step + 1)) continue;
      local.average(result);
      require(result.stop == (step + 1 == 6), "all ranks learn of a stop at the next average, once");
      losses.push_back(result.sums[0] / result.count);
      engine.download();
      require(!check.find(stream), "replicas differ");
    }
    const std::lock_guard lock(one_at_a_time);
    initial = initial_values;
    outcome.losses = losses;
    for (const auto* tensors : {&engine.weights(), &engine.state()}) {
      for (const NamedTensor& tensor : *tensors) {
        outcome.values[tensor.name] = Values(tensor.view.as<float>(), tensor.view.as<float>() + tensor.view.count);
      }
    }
  };
  for (const std::string& error : on_threads(ranks, run)) {
    if (!error.empty()) throw std::runtime_error(error);
  }
  return outcome;
}

}  // namespace

TEST_CASE("replicas that take local steps are averaged, weighted by the number of samples that they saw") {
  for (const int ranks : {2, 4}) {
    Values initial;
    const Outcome outcome = trained(ranks, initial);
    const Outcome expected = plain(ranks, initial);
    CAPTURE(ranks);
    REQUIRE(outcome.losses.size() == expected.losses.size());
    for (std::size_t i = 0; i < expected.losses.size(); ++i) {
      CHECK(outcome.losses[i] == Approx(expected.losses[i]).epsilon(1e-5));
    }
    REQUIRE(outcome.values.size() == expected.values.size());
    for (const auto& [name, values] : expected.values) {
      CAPTURE(name);
      const Values& own = outcome.values.at(name);
      REQUIRE(own.size() == values.size());
      double difference = 0;
      for (std::size_t i = 0; i < values.size(); ++i) difference = std::max(difference, std::abs(own[i] - values[i]));
      CHECK(difference < 2e-6);
    }
  }
}

TEST_CASE("all ranks learn at the next average that the loss of one replica is not finite") {
  const auto run = [](Communicator& world) {
    const TestJob job("layers: [flatten, {dense: {name: d, units: 3, activation: softmax}}]", "sgd");
    Strategy strategy{{.data = 2}, {}, false};
    strategy.options.sync_every.value = 3;
    Reader reader;
    const RunPrograms programs(job.spec, strategy, {.training = 13}, world.rank(), reader);
    reader.throw_if_failed();
    const auto backend = make_cpu_backend({});
    KernelChoices choices;
    Engine engine(*backend, world, compile(programs.programs(), *backend, choices));
    initialize_weights(job.spec, 9, engine.weights());
    engine.upload();
    ImmediateStream stream;
    LocalSteps local({}, engine, world, stream);
    Samples samples(0);
    if (world.rank() == 1) samples.values[inputs * 9] = std::nanf("");
    StepResult result;
    for (int step = 0; step < 2; ++step) {
      engine.run(0, samples.share(share_of(13, programs.rank())), {rate, step, false}, result);
      local.add(result);
    }
    local.average(result);
    require(result.not_finite, "all ranks know that the loss is not finite");
  };
  for (const std::string& error : on_threads(2, run)) CHECK(error == "");
}

}  // namespace trainctl::local_steps_test
