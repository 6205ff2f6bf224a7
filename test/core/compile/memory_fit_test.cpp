// Tests the error text of a run that does not fit into memory.
#include "core/compile/memory_fit.h"

#include <string>

#include "core/base/error.h"
#include "test/catch.h"

namespace trainctl::test::memory_fit_test {
namespace {

MemoryPlan plan_of(std::int64_t parameters, std::int64_t arena) {
  MemoryPlan plan;
  plan.bytes[static_cast<std::size_t>(Region::parameters)] = parameters;
  plan.bytes[static_cast<std::size_t>(Region::slot)] = arena;
  return plan;
}

std::string message(const MemoryPlan& plan, std::int64_t limit, const BatchCut& cut, bool from_config = false) {
  try {
    require_fit(plan, {limit, from_config}, cut);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::resource);
    return error.what();
  }
  return "";
}

bool holds(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST_CASE("a run that fits, or whose limit is not known, is accepted") {
  CHECK(message(plan_of(100, 900), 1000, {64, 1, 64}).empty());
  CHECK(message(plan_of(100, 900), 0, {64, 1, 64}).empty());
}

TEST_CASE("a run that needs more memory than any machine has is refused even if free memory is not known") {
  const std::string text = message(plan_of(max_memory, 900), 0, {64, 1, 64});
  CAPTURE(text);
  CHECK(holds(text, "no machine has more than 140.7 TB"));
}

TEST_CASE("the error says whether the limit is the config's or the machine's") {
  CHECK(holds(message(plan_of(2000, 900), 1000, {64, 1, 64}), "but 1.0 kB are free"));
  CHECK(holds(message(plan_of(2000, 900), 1000, {64, 1, 64}, true), "but cluster.memory is 1.0 kB"));
}

TEST_CASE("the error says which accumulation and which batch would fit") {
  // 10 GB of parameters and 90 GB of arena on 40 GB: a third of the arena fits, and 4 divides the 64 samples.
  const std::string text = message(plan_of(10'000'000'000, 90'000'000'000), 40'000'000'000, {128, 1, 64});
  CAPTURE(text);
  CHECK(holds(text, "gradient_accumulation: 4"));
  CHECK(holds(text, "a batch of about 42 samples"));
  CHECK(holds(text, "activations and workspace"));
  // A third of the arena fits, and 3 divides the 96 samples of a rank.
  CHECK(holds(message(plan_of(10, 90), 40, {96, 1, 96}), "gradient_accumulation: 3"));
  CHECK(holds(message(plan_of(10, 90), 40, {96, 2, 96}), "gradient_accumulation: 6"));
  CHECK_FALSE(holds(message(plan_of(10, 90), 40, {2, 1, 1}), "gradient_accumulation"));
}

TEST_CASE("the error says if the run would fit without copies for checkpoints") {
  MemoryPlan plan = plan_of(1000, 100);
  plan.staged = 2000;
  CHECK(plan.total() == 3100);
  CHECK(holds(message(plan, 2000, {64, 1, 64}), "checkpoint.background: false would need 1.1 kB; or use a smaller"));
  CHECK(holds(message(plan, 3050, {64, 1, 64}), "false would need 1.1 kB; or train.gradient_accumulation: 2"));
  CHECK_FALSE(holds(message(plan, 1050, {64, 1, 64}), "checkpoint.background"));
  plan.on_host = false;  // the memory of a device, which has no copies
  CHECK(message(plan, 2000, {64, 1, 64}).empty());
}

TEST_CASE("the error of a network that does not fit with any batch asks for a smaller network") {
  const std::string text = message(plan_of(100, 10), 90, {64, 1, 64});
  CHECK(holds(text, "smaller network"));
  CHECK_FALSE(holds(text, "gradient_accumulation"));
}

}  // namespace
}  // namespace trainctl::test::memory_fit_test
