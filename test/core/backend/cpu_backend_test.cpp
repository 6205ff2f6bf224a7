// Tests the CPU backend: memory, streams, events, errors, and kernels that allocate nothing and repeat the same bits.
#include "core/backend/cpu/cpu_backend.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "core/backend/choices.h"
#include "core/backend/cpu/runtime/peaks.h"
#include "core/backend/cpu/runtime/processor.h"
#include "core/backend/cpu/simd/product.h"
#include "core/backend/select.h"
#include "core/base/error.h"
#include "core/base/thread_clock.h"
#include "core/graph/ops/dense.h"
#include "core/graph/ops/images/convolution.h"
#include "core/graph/ops/losses/losses.h"
#include "core/graph/ops/normalization/batch_norm.h"
#include "core/program/program.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"
#include "test/support/count_allocations.h"

namespace trainctl::test::cpu_backend_test {
namespace {

// Appends its number to a list.
struct Step {
  std::vector<int>* list;
  int number;
  static HostTask task(Step& step) {
    return {[](void* context) {
              auto* self = static_cast<Step*>(context);
              self->list->push_back(self->number);
            },
            &step};
  }
};

HostTask failing() {
  return {[](void*) { throw std::runtime_error("task failed"); }, nullptr};
}

}  // namespace

TEST_CASE("memory is zeroed and aligned, and an allocation that is too large is refused with its size") {
  const auto backend = make_cpu_backend({});
  const Memory memory = backend->allocate(1000003);
  CHECK(reinterpret_cast<std::uintptr_t>(memory.get()) % 64 == 0);
  CHECK(std::all_of(memory.get(), memory.get() + memory.bytes, [](std::byte b) { return b == std::byte{0}; }));
  CHECK_THROWS_AS(backend->allocate(std::int64_t{1} << 50), Error);
  try {
    backend->allocate(std::int64_t{1} << 50);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::resource);
    CHECK(std::string(error.what()).find("1125899906.8 MB were requested") != std::string::npos);
  }
}

TEST_CASE("a backend is created by the name of its device") {
  CHECK(make_backend("auto")->name() == "cpu");
  CHECK(make_backend("cpu", {.threads = 2})->fingerprint().find("2 threads, oneDNN") != std::string::npos);
  CHECK_THROWS_AS(make_backend("cuda"), Error);
  CHECK_THROWS_AS(make_backend("abacus"), Error);
}

TEST_CASE("an op without a kernel is an error at its location in the config") {
  struct Unknown final : OpDef {
    std::string_view kind() const override { return "unknown"; }
    std::vector<TensorType> outputs(std::span<const TensorType>) const override { return {}; }
    OutputPlacements placements(const PlacementQuery&) const override { return {}; }
  };
  const auto backend = make_cpu_backend({});
  KernelChoices choices;
  const Op op{std::make_shared<Unknown>(), {}, {}, "layer", {"net.yaml", 3, 5}};
  try {
    backend->lower(op, {}, {}, choices);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    CHECK(error.location().line == 3);
  }
}

TEST_CASE("streams run tasks in order, throw the first exception at synchronize, and go on") {
  const auto backend = make_cpu_backend({});
  for (const auto& stream : {backend->compute_stream(), backend->asynchronous_stream()}) {
    std::vector<int> list;
    std::vector<Step> steps;
    for (int i = 0; i < 500; ++i) steps.push_back({&list, i});  // more than the queue holds at first
    for (int i = 0; i < 250; ++i) stream->enqueue(Step::task(steps[static_cast<std::size_t>(i)]));
    stream->enqueue(failing());
    for (int i = 250; i < 500; ++i) stream->enqueue(Step::task(steps[static_cast<std::size_t>(i)]));
    CHECK_THROWS_AS(stream->synchronize(), std::runtime_error);
    stream->synchronize();
    REQUIRE(list.size() == 500);
    for (int i = 0; i < 500; ++i) CHECK(list[static_cast<std::size_t>(i)] == i);
  }
}

TEST_CASE("an event makes one stream wait for another") {
  const auto backend = make_cpu_backend({});
  const auto compute = backend->compute_stream(), other = backend->asynchronous_stream();
  const auto event = backend->event();
  std::atomic<int> value = 0;
  for (int round = 1; round <= 20; ++round) {
    other->enqueue({[](void* context) {
                      std::this_thread::sleep_for(std::chrono::milliseconds(1));
                      ++*static_cast<std::atomic<int>*>(context);
                    },
                    &value});
    event->record(*other);
    event->wait(*compute);
    CHECK(value == round);
  }
}

TEST_CASE("a copy waits for the earlier tasks of its stream") {
  const auto backend = make_cpu_backend({});
  const auto stream = backend->asynchronous_stream();
  int source = 1, target = 0;
  stream->enqueue({[](void* context) {
                     std::this_thread::sleep_for(std::chrono::milliseconds(2));
                     *static_cast<int*>(context) = 7;
                   },
                   &source});
  backend->copy(&target, &source, sizeof source, *stream);
  stream->synchronize();
  CHECK(target == 7);
}

TEST_CASE("kernels allocate nothing, use the memory of the given slot, and compute the same bits each time") {
  const auto backend = make_cpu_backend({.threads = GENERATE(1, 2)});
  const auto stream = backend->compute_stream();
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const Window w{{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
  const Value x = random_value({8, 9, 9, 32}, dtype, 1), dy = random_value({8, 9, 9, 16}, dtype, 2);
  const std::vector<std::pair<std::shared_ptr<const OpDef>, std::vector<Value>>> cases{
      {std::make_shared<Conv2dGradWeights>(w, 1, true, false), {x, dy}},
      {std::make_shared<BatchNorm>(BatchNormAttributes{1e-3f, false, false, false, true}), {x}},
      {std::make_shared<DenseGradWeights>(true, false),
       {random_value({64, 300}, dtype, 3), random_value({64, 100}, dtype, 4)}},
      {std::make_shared<Loss>(MeanSquaredError{}, true, false),
       {random_value({64, 10}, dtype, 5), random_value({64, 10}, DType::float32, 6),
        random_value({64}, DType::float32, 7)}},
  };
  for (const auto& [def, inputs] : cases) {
    CAPTURE(def->kind(), name_of(dtype));
    Program program;
    Op op{def, {}, {}, "op", {}};
    std::vector<Layout> layouts;
    std::vector<TensorType> types;
    std::int64_t bytes = 0;
    Binding binding;
    const auto reserve = [&](std::int64_t size) {
      const Address address{nullptr, bytes};
      bytes += (size + 63) / 64 * 64;
      return address;
    };
    for (const Value& input : inputs) {
      types.push_back(input.type);
      layouts.push_back(logical_layout(input.type));
      op.inputs.push_back(static_cast<TensorId>(program.tensors.size()));
      program.tensors.push_back({.name = "input", .type = input.type});
      binding.inputs.push_back(reserve(input.type.bytes()));
    }
    const std::vector<TensorType> results = def->outputs(types);
    for (const TensorType& type : results) {
      op.outputs.push_back(static_cast<TensorId>(program.tensors.size()));
      program.tensors.push_back({.name = "output", .type = type});
      binding.outputs.push_back(reserve(type.bytes()));
    }
    KernelChoices choices;
    const Lowering lowering = backend->lower(op, program, layouts, choices);
    for (std::size_t i = 0; i < inputs.size(); ++i) REQUIRE(lowering.inputs[i] == layouts[i]);
    binding.workspace = reserve(lowering.workspace_bytes);
    const auto kernel = lowering.bind(binding);

    std::vector<Memory> memory{backend->allocate(bytes), backend->allocate(bytes)};
    const std::vector<Slot> slots{{0, memory[0].get()}, {1, memory[1].get()}};
    for (const Slot& slot : slots) {
      for (std::size_t i = 0; i < inputs.size(); ++i) write_values(inputs[i], binding.inputs[i].at(slot));
      kernel->run(*stream, slot);
    }
    const std::int64_t before = allocations_of_ours();
    for (int repetition = 0; repetition < 4; ++repetition)
      kernel->run(*stream, slots[static_cast<std::size_t>(repetition % 2)]);
    CHECK(allocations_of_ours() == before);
    for (std::size_t i = 0; i < results.size(); ++i) {
      const auto size = static_cast<std::size_t>(results[i].bytes());
      CHECK(std::memcmp(binding.outputs[i].at(slots[0]), binding.outputs[i].at(slots[1]), size) == 0);
    }
  }
}

TEST_CASE("kernel choices are the same after conversion to text and back, and a damaged text is refused") {
  KernelChoices choices, read;
  choices.record("conv2d 3x3", "jit:avx512_core");
  choices.record("dense float32", "plain");
  read.add(choices.text());
  CHECK(read == choices);
  CHECK(read.find("dense float32") == "plain");
  CHECK_FALSE(read.find("dense"));
  CHECK_THROWS_AS(read.add("no tab here\n"), Error);
}

TEST_CASE("the peak rates of the CPU are measured") {
  make_cpu_backend({});
  const Peaks peaks = measure_cpu_peaks();
  CHECK(peaks.float32_gflops > 0.1);
  CHECK(peaks.bfloat16_gflops > 0.01);
  CHECK(peaks.triad_gb_per_s > 0.1);

  // A product of matrices that lie in the first cache comes close to the peak.
  constexpr std::int64_t rows = 6, columns = 64, depth = 64;
  const std::vector<float> a(rows * depth, 0.5f), b(depth * columns, 0.25f);
  std::vector<float> c(rows * columns);
  constexpr int calls = 2000;
  double seconds = 1e30;
  for (int repetition = 0; repetition < 5; ++repetition) {
    const double start = thread_seconds();
    for (int i = 0; i < calls; ++i) {
      cpu::multiply({a.data(), depth, 1, b.data(), columns, c.data(), columns, rows, columns, depth});
    }
    seconds = std::min(seconds, thread_seconds() - start);
  }
  const double gflops = 2e-9 * calls * static_cast<double>(rows * columns * depth) / seconds;
  CAPTURE(peaks.float32_gflops, gflops);
  CHECK(gflops < 1.2 * peaks.float32_gflops);
  if (cpu::instruction_set() != cpu::InstructionSet::baseline) CHECK(gflops > 0.4 * peaks.float32_gflops);
}

}  // namespace trainctl::test::cpu_backend_test
