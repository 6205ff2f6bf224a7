// Tests the choice between candidates on CUDA: what is recorded and logged, and candidates that cannot be timed.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/graph/ops/dense.h"
#include "core/graph/ops/images/convolution.h"
#include "core/program/program.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::candidates_test {
namespace {

// Collects the lines that are logged during its lifetime.
class Logged {
 public:
  Logged() : path_(std::filesystem::temp_directory_path() / ("candidates-" + std::to_string(getpid()))) {
    std::filesystem::remove(path_);
    log::add_file(path_, log::Level::debug);
  }
  ~Logged() { std::filesystem::remove(path_); }

  std::vector<std::string> lines_with(const std::string& part) const {
    std::vector<std::string> found;
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) {
      if (line.find(part) != std::string::npos) found.push_back(line);
    }
    return found;
  }

 private:
  std::string path_;
};

// Returns the choices with `value` for all keys that start with `beginning`.
KernelChoices replaced(const KernelChoices& choices, const std::string& beginning, const std::string& value) {
  KernelChoices all;
  std::istringstream lines(choices.text());
  for (std::string line; std::getline(lines, line);) {
    const std::string key = line.substr(0, line.find('\t'));
    all.record(key, key.starts_with(beginning) ? value : line.substr(key.size() + 1));
  }
  return all;
}

}  // namespace

TEST_CASE("the gradient of a dense layer's bias is computed with the product or by itself, and both are timed") {
  const Logged logged;
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const auto backend = backend_under_test();
  const Value x = random_value({96, 24}, dtype, 1), dy = random_value({96, 40}, dtype, 2);
  const auto def = std::make_shared<DenseGradWeights>(true, false);
  KernelChoices choices;
  const auto chosen = run_op(*backend, def, {x, dy}, {}, &choices);
  CHECK(!logged.lines_with("timed dense_grad_weights").empty());
  std::size_t candidates = 0;
  for (const std::string& line : logged.lines_with("timed dense_grad_weights")) {
    candidates += line.find(": product") == std::string::npos ? 1 : 0;  // other lines are of the products' algorithms
    CHECK(line.ends_with(" ms"));
  }
  CHECK(candidates == 2);
  for (const std::string candidate : {"product", "product and bias"}) {
    CAPTURE(name_of(dtype), candidate);
    KernelChoices recorded = replaced(choices, "dense_grad_weights", candidate);
    Lowering lowering;
    const auto outputs = run_op(*backend, def, {x, dy}, {}, &recorded, &lowering);
    CHECK((lowering.implementation.find("with the bias") != std::string::npos) == (candidate != "product"));
    CHECK(largest_error(outputs[0], chosen[0].values) < 1e-5);
    CHECK(largest_error(outputs[1], chosen[1].values) < 1e-5);
  }
}

TEST_CASE("a damaged record of a product is a data error, and one that cannot be used is logged") {
  const Logged logged;
  const auto backend = backend_under_test();
  const auto def = std::make_shared<Dense>();
  const Value x = random_value({16, 24}, DType::float32, 1), kernel = random_value({24, 40}, DType::float32, 2);
  KernelChoices choices;
  const auto expected = run_op(*backend, def, {x, kernel}, {}, &choices);
  for (const std::string& damaged : {std::string("x"), std::string(128, 'g'), std::string(127, '0')}) {
    KernelChoices recorded = replaced(choices, "product", damaged);
    try {
      run_op(*backend, def, {x, kernel}, {}, &recorded);
      FAIL("it was accepted");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::data);
      CHECK(std::string(error.what()).find("is not an algorithm of cuBLASLt") != std::string::npos);
    }
  }
  // Timing decides which algorithm is chosen instead; it is recorded, and used unchanged from then on.
  const KernelChoices unusable = replaced(choices, "product", std::string(128, '0'));
  KernelChoices other = unusable;
  CHECK(largest_error(run_op(*backend, def, {x, kernel}, {}, &other)[0], expected[0].values) < 1e-5);
  CHECK_FALSE(other == unusable);
  KernelChoices again = other;
  CHECK(largest_error(run_op(*backend, def, {x, kernel}, {}, &again)[0], expected[0].values) < 1e-5);
  CHECK(again == other);
  CHECK(logged.lines_with("the recorded kernel cannot be used here; another one is chosen").size() == 1);
}

TEST_CASE("a candidate whose result differs from that of the others is not used, however fast, and is logged") {
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const auto backend = backend_under_test();
  if (backend->fingerprint().find("Emulated GPU") == std::string::npos) return;  // a real one has no such engine
  const Logged logged;
  setenv("TRAINCTL_EMULATED_WRONG_ENGINE", "1", 1);
  const Value x = random_value({2, 9, 7, 16}, dtype, 1), dy = random_value({2, 9, 7, 24}, dtype, 2);
  const Window window{{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
  const auto def = std::make_shared<Conv2dGradWeights>(window, 1, true, false);
  KernelChoices choices;
  const auto chosen = run_op(*backend, def, {x, dy}, {}, &choices);
  unsetenv("TRAINCTL_EMULATED_WRONG_ENGINE");
  REQUIRE(logged.lines_with("cudnn engine 3:: ").size() == 1);
  const auto rejections = logged.lines_with("cudnn engine 3: is rejected: ");
  REQUIRE(rejections.size() == 1);
  CHECK(rejections[0].find("conv2d_grad_weights 'op': ") != std::string::npos);
  CHECK(rejections[0].ends_with(" other candidates agree on a different result"));
  CHECK(choices.text().find("engine 3:") == std::string::npos);
  KernelChoices first;
  const auto expected = run_op(*make_backend("cuda", {.timing = false}), def, {x, dy}, {}, &first);
  CHECK(largest_error(chosen[0], expected[0].values) < (dtype == DType::float32 ? 1e-5 : 2e-2));
}

TEST_CASE("a deterministic device without timing uses the first candidate, but none that the others outvote") {
  const auto backend = backend_under_test({.deterministic = true, .timing = false});
  if (backend->fingerprint().find("Emulated GPU") == std::string::npos) return;  // a real one has no such engine
  const Value x = random_value({2, 9, 7, 16}, DType::bfloat16, 1), dy = random_value({2, 9, 7, 24}, DType::bfloat16, 2);
  const Window window{{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
  const auto def = std::make_shared<Conv2dGradWeights>(window, 1, true, false);
  KernelChoices usual, guarded;
  const auto expected = run_op(*backend, def, {x, dy}, {}, &usual);
  const Logged logged;
  setenv("TRAINCTL_EMULATED_WRONG_ENGINE", "1", 1);
  const auto got = run_op(*make_backend("cuda", {.deterministic = true, .timing = false}), def, {x, dy}, {}, &guarded);
  unsetenv("TRAINCTL_EMULATED_WRONG_ENGINE");
  CHECK(logged.lines_with("engine 3: is rejected: ").size() == 1);
  CHECK(largest_error(got[0], expected[0].values) < 2e-2);
  KernelChoices again;
  run_op(*backend, def, {x, dy}, {}, &again);
  CHECK(again == usual);
}

TEST_CASE("if no candidate can be timed, that is logged with the op, its location and the reasons") {
  const Logged logged;
  const auto backend = backend_under_test();
  // More rows than the memory can hold.
  const std::int64_t rows = backend->free_memory() / (64 * size_of(DType::float32)) + 1;
  Program program;
  const auto add = [&](const Shape& shape) {
    program.tensors.push_back({.name = "t", .type = {shape, DType::float32}});
    return static_cast<TensorId>(program.tensors.size() - 1);
  };
  Op op{std::make_shared<DenseGradWeights>(true, false),
        {add({rows, 64}), add({rows, 8})},
        {add({64, 8}), add({8})},
        "fc1",
        SourceLocation{"big.yaml", 12, 7}};
  std::vector<Layout> inputs;
  for (const TensorId id : op.inputs) inputs.push_back(logical_layout(program.tensor(id).type));
  KernelChoices choices;
  const Lowering lowering = backend->lower(op, program, inputs, choices);
  CHECK(!lowering.implementation.empty());
  const std::string op_prefix = "dense_grad_weights 'fc1' (big.yaml:12:7): ";
  CHECK(logged.lines_with(op_prefix + "product ").size() == 2);  // the algorithms of two products
  CHECK(logged.lines_with("is not timed: cudaMalloc: ").size() == 2);
  CHECK(logged.lines_with("is left out: cudaMalloc: ").size() == 2);
  const auto none =
      logged.lines_with("dense_grad_weights 'fc1' (big.yaml:12:7) is not timed: none of its 2 candidates ran (");
  REQUIRE(none.size() == 1);
  CHECK(none[0].find("cudaMalloc: ") != std::string::npos);
  CHECK(none[0].ends_with(" is used"));
}

}  // namespace trainctl::test::candidates_test
