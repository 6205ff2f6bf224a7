// Tests that only the values that the host reads are copied to it after a step.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/backend/select.h"
#include "io/loader/data.h"
#include "run/job/job.h"
#include "run/run_spec.h"
#include "test/catch.h"
#include "test/support/configs.h"
#include "test/support/forwarded_backend.h"

namespace trainctl::test::step_results_test {
namespace {

// A backend that counts the bytes of copy_all().
class Counting final : public ForwardedBackend {
 public:
  using ForwardedBackend::ForwardedBackend;

  std::int64_t last_copied = 0;  // bytes of the last call

  void copy_all(std::span<const CopyRange> parts, Stream& stream) override {
    last_copied = 0;
    for (const CopyRange& part : parts) last_copied += part.bytes;
    ForwardedBackend::copy_all(parts, stream);
  }
};

TEST_CASE("after a step only what the host reads is copied to it") {
  const std::string config = std::filesystem::temp_directory_path() / ("results-" + std::to_string(getpid()) + ".yaml");
  std::ofstream(config) << uneven_data + R"(
model:
  layers:
    - conv2d: {filters: 500, kernel_size: 1}
    - batch_normalization
    - global_average_pooling2d
    - dense: {units: 5, activation: softmax}
)" + train_section("batch_size: 20, epochs: 1, optimizer: sgd");
  const RunSpec spec = load_run_spec(config, {});
  std::filesystem::remove(config);
  World world;
  RankDevice device;
  auto counting = std::make_unique<Counting>(make_backend("cpu"));
  Counting& backend = *counting;
  device.backend = std::move(counting);
  const Data data(spec.data, spec.seed);
  Job job(spec, data.info(), device, world, {}, "");
  initialize_engine(spec, job);
  const auto source = data.training(20, job.rank(), {spec.seed, 0, 0}, 1, job.target_encodings(), job.batch_memory());
  StepResult result;
  const Batch& batch = source->next();
  CHECK(batch.host_memory);
  const int program = job.programs().training(batch.global_count);
  REQUIRE(job.engine().program(program).program.flat.statistic_count == 1000);  // which the ranks average
  job.engine().run(program, batch, {1e-3, 0, false}, result);
  CHECK(result.count == 20);
  CHECK(result.sums[0] > 0);
  CHECK(result.sums.size() == 3);  // the loss, a metric, the weights
  CHECK(result.gradient_norm > 0);
  CHECK(backend.last_copied > 0);
  CHECK(backend.last_copied <= 512);
}

}  // namespace
}  // namespace trainctl::test::step_results_test
