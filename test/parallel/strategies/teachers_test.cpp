// Compares the weights of teachers with moving averages that are computed in float64.
#include <map>
#include <random>
#include <string>
#include <vector>

#include "parallel/trainer/initial_weights.h"
#include "test/catch.h"
#include "test/core/program/batch_of.h"
#include "test/core/program/job.h"
#include "test/core/program/slopes.h"

namespace trainctl::strategies_teachers_test {
namespace {

constexpr std::int64_t samples = 6;

// The teacher sees the same values as the student, whose code shall be like the teacher's.
TestJob job_of(const std::string& of = "student") {
  TestJob job(R"({layers: [
    {dense: {name: student_1, units: 3, activation: tanh}},
    {dense: {name: student_2, units: 2}},
    {dense: {name: teacher_1, from: input, units: 3, activation: tanh}},
    {dense: {name: teacher_2, units: 2}},
    {dense: {name: head, from: student_2, units: 2}}],
    add_loss: {alike: {from: [student_2, teacher_2], inputs: [s, t], expression: 'sum(square(s - t + 1), axis=-1)'}}})",
              "{name: sgd, momentum: 0.9}", "mse", "mean_absolute_error");
  job.spec.inputs[0].sample = {4};
  job.spec.outputs[0].target.shape = {2};
  job.spec.teachers = {{"teacher", of, 0.8, {}}};
  return job;
}

struct Samples {
  std::vector<float> inputs, targets, weights = std::vector<float>(samples, 1.0f);
  std::vector<std::int64_t> numbers;

  Samples() {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < samples; ++i) {
      for (int k = 0; k < 4; ++k) inputs.push_back(normal(random));
      for (int k = 0; k < 2; ++k) targets.push_back(normal(random));
      numbers.push_back(i);
    }
  }
  Batch batch() { return batch_of(inputs, targets, weights, numbers); }
};

}  // namespace

TEST_CASE("the weights of a teacher begin as those of the student, and are their moving average", "[teachers]") {
  Samples data;
  TestJob job = job_of();
  job.spec.compute = GENERATE(DType::float32, DType::bfloat16);
  const Program training = job.training(samples), evaluation = job.evaluation(samples);
  const auto backend = make_cpu_backend({});
  const auto communicator = solo_communicator();
  KernelChoices choices;
  Engine engine(*backend, *communicator, compile({training, evaluation}, *backend, choices));
  initialize_weights(job.spec, 4, engine.weights());
  const auto weights = by_name(engine.weights());
  std::map<std::string, std::vector<double>> averages;  // key: without "teacher"
  for (const auto& [name, tensor] : weights) {
    const float* const values = tensor->view.as<float>();
    if (name.starts_with("student")) averages[std::string(name.substr(7))].assign(values, values + tensor->view.count);
  }
  const auto check_averages = [&] {
    for (const auto& [name, expected] : averages) {
      CAPTURE(name);
      const View& view = weights.at("teacher" + name)->view;
      REQUIRE(view.count == std::ssize(expected));
      for (std::size_t k = 0; k < expected.size(); ++k) CHECK(view.as<float>()[k] == Approx(expected[k]).margin(1e-6));
    }
  };
  REQUIRE(averages.size() == 4);
  check_averages();
  engine.upload();
  StepResult result;
  for (int step = 0; step < 4; ++step) {
    CAPTURE(step);
    engine.run(0, data.batch(), {.learning_rate = 0.1, .step = step}, result);
    engine.download();
    for (auto& [name, average] : averages) {
      const float* const values = weights.at("student" + name)->view.as<float>();
      for (std::size_t k = 0; k < average.size(); ++k) average[k] = 0.8 * average[k] + (1 - 0.8) * double{values[k]};
    }
    check_averages();
  }
  CHECK(engine.state().size() == 6);  // of the student and the head
  // The evaluation reads the present weights of the teacher: so does an engine that begins with them.
  const auto value = [&](const Program& program, Engine& of, int number) {
    StepResult evaluated;
    of.run(number, data.batch(), {}, evaluated);
    return program.results[0].of(evaluated.sums, evaluated.count);
  };
  Engine other(*backend, *communicator, compile({evaluation}, *backend, choices));
  for (const NamedTensor& tensor : other.weights()) {
    std::copy_n(weights.at(tensor.name)->view.as<float>(), tensor.view.count, tensor.view.as<float>());
  }
  other.upload();
  CHECK(value(evaluation, engine, 1) == Approx(value(evaluation, other, 0)).epsilon(1e-6));
}

TEST_CASE("mistakes in teachers are errors", "[teachers]") {
  CHECK(job_of().error(samples).empty());
  CHECK(job_of("studnt").error(samples).find("'teacher_1/kernel' follows 'studnt_1/kernel', but no parameter") !=
        std::string::npos);
  const auto says = [](const TestJob& wrong, const std::string& text) {
    const std::string error = wrong.error(samples);
    CAPTURE(error);
    CHECK(error.find(text) != std::string::npos);
  };
  says(job_of("teacher"), "cannot be told apart");
  TestJob twice = job_of();
  twice.spec.teachers.push_back({"teacher_1", "student_1", 0.8, {}});
  says(twice, "'teacher_1/kernel' is frozen or follows another layer already");
  TestJob chain("{layers: [{dense: {name: a, units: 4}}, {dense: {name: b, units: 4}}, {dense: {name: c, units: 4}}]}",
                "sgd", "mse", "mean_absolute_error");
  chain.spec.inputs[0].sample = chain.spec.outputs[0].target.shape = {4};
  chain.spec.teachers = {{"a", "b", 0.8, {}}, {"b", "c", 0.8, {}}};
  says(chain, "'b/kernel' is followed by another teacher");
  chain.spec.teachers = {{"b", "c", 0.8, {}}, {"a", "b", 0.8, {}}};
  says(chain, "but no parameter of this name");
  TestJob job = job_of();
  job.spec.teachers[0].name = "tutor";
  CHECK(job.error(samples).find("teacher 'tutor': no layer with weights has a name that begins with 'tutor'") !=
        std::string::npos);
}

}  // namespace trainctl::strategies_teachers_test
