// Tests that a step of a run, from the data to the update, allocates no memory once the first steps have run.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "core/backend/select.h"
#include "io/loader/data.h"
#include "run/job/job.h"
#include "run/run_spec.h"
#include "test/catch.h"
#include "test/support/configs.h"
#include "test/support/count_allocations.h"

namespace trainctl::test::steady_state_test {
namespace {

TEST_CASE("a step of a whole network, including the data, allocates no memory once the first steps have run") {
  const char* workers = GENERATE("0", "2");
  const char* precision = GENERATE("float32", "bfloat16");
  const std::string config = std::filesystem::temp_directory_path() / ("steady-" + std::to_string(getpid()) + ".yaml");
  std::ofstream(config) << uneven_data + batch_norm_model + train_section("batch_size: 20, epochs: 1, optimizer: adam");
  const RunSpec spec =
      load_run_spec(config, {std::string("data.workers=") + workers, std::string("train.precision=") + precision});
  std::filesystem::remove(config);
  World world;
  RankDevice device;
  device.backend = make_backend("cpu");
  const Data data(spec.data, spec.seed);
  Job job(spec, data.info(), device, world, {}, "");
  initialize_engine(spec, job);
  const auto source = data.training(20, job.rank(), {spec.seed, 0, 0}, 1, job.target_encodings());
  StepResult result;
  std::int64_t number = 0;
  const auto epoch = [&] {
    for (int i = 0; i < 6; ++i) {
      const Batch& batch = source->next();
      job.engine().run(job.programs().training(batch.global_count), batch, {1e-3, number++, false}, result);
    }
  };
  epoch();  // both sizes of batches, once
  // On a busy machine a worker may read its first sample late and allocate memory then. An allocation in every step is
  // counted in every round, so the round with the fewest allocations is checked.
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int round = 0; round < 5 && least > 0; ++round) {
    const std::int64_t before = allocations_of_ours();
    epoch();
    epoch();
    least = std::min(least, allocations_of_ours() - before);
  }
  CAPTURE(workers, precision);
  CHECK(least == 0);
  CHECK(result.count > 0);
}

}  // namespace
}  // namespace trainctl::test::steady_state_test
