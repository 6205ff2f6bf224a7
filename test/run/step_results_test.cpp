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

namespace trainctl::test::step_results_test {
namespace {

// A backend that counts the bytes of copy_all().
class Counting final : public Backend {
 public:
  explicit Counting(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}

  std::int64_t last_copied = 0;  // bytes of the last call

  std::string_view name() const override { return inner_->name(); }
  bool on_host() const override { return inner_->on_host(); }
  std::string fingerprint() const override { return inner_->fingerprint(); }
  bool computes_in(DType dtype) const override { return inner_->computes_in(dtype); }
  Peaks peaks() override { return inner_->peaks(); }
  Memory allocate(std::int64_t bytes) override { return inner_->allocate(bytes); }
  std::int64_t free_memory() const override { return inner_->free_memory(); }
  Memory allocate_host(std::int64_t bytes) override { return inner_->allocate_host(bytes); }
  void copy(void* to, const void* from, std::int64_t bytes, Stream& stream) override {
    inner_->copy(to, from, bytes, stream);
  }
  void copy_rows(void* to, std::int64_t to_stride, const void* from, std::int64_t from_stride, std::int64_t width,
                 std::int64_t rows, Stream& stream) override {
    inner_->copy_rows(to, to_stride, from, from_stride, width, rows, stream);
  }
  void copy_all(std::span<const CopyRange> parts, Stream& stream) override {
    last_copied = 0;
    for (const CopyRange& part : parts) last_copied += part.bytes;
    inner_->copy_all(parts, stream);
  }
  std::unique_ptr<Stream> compute_stream() override { return inner_->compute_stream(); }
  std::unique_ptr<Stream> asynchronous_stream() override { return inner_->asynchronous_stream(); }
  std::unique_ptr<Event> event() override { return inner_->event(); }
  int compute_streams() const override { return inner_->compute_streams(); }
  bool asynchronous() const override { return inner_->asynchronous(); }
  std::unique_ptr<Recording> record(Stream& stream, const std::function<void()>& queue) override {
    return inner_->record(stream, queue);
  }
  std::unique_ptr<Marks> marks(int count) override { return inner_->marks(count); }
  void prepare(const Program& program, KernelChoices& choices) override { inner_->prepare(program, choices); }
  Lowering lower(const Op& op, const Program& program, const std::vector<Layout>& inputs,
                 KernelChoices& choices) override {
    return inner_->lower(op, program, inputs, choices);
  }
  bool updates_copies() const override { return inner_->updates_copies(); }
  bool adds_gradients() const override { return inner_->adds_gradients(); }

 private:
  std::unique_ptr<Backend> inner_;
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
