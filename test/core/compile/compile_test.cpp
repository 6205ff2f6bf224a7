// Tests placed programs with and without kernels, for training and for evaluation alone.
#include "core/compile/compile.h"

#include <algorithm>
#include <map>

#include "core/backend/select.h"
#include "test/catch.h"
#include "test/core/program/job.h"

namespace trainctl::compile_test {
namespace {

const char* const network = R"(
layers:
  - conv2d: {filters: 8, kernel_size: 3, padding: same, use_bias: false}
  - batch_normalization
  - activation: relu
  - max_pooling2d
  - flatten
  - dense: {units: 12, activation: relu}
  - dense: {units: 3}
)";

// The regions whose bytes follow from the program alone.
constexpr Region flat_regions[] = {Region::parameters, Region::gradients, Region::states, Region::statistics,
                                   Region::scalars};

}  // namespace

TEST_CASE("memory without kernels is the same as with kernels, except for what kernels need") {
  TestJob job(network);
  job.spec.compute = GENERATE(DType::float32, DType::bfloat16);
  const auto backend = make_backend("cpu", {});
  if (!backend->computes_in(job.spec.compute)) return;
  const std::vector<Program> programs{job.training(16), job.training(16, 4), job.evaluation(7)};
  KernelChoices choices;
  const Compiled with = compile(programs, *backend, choices), without = compile_without_kernels(programs, {});
  for (const Region region : flat_regions) CHECK(without.memory.of(region) == with.memory.of(region));
  CHECK(without.memory.of(Region::slot) <= with.memory.of(Region::slot));
  CHECK(without.memory.of(Region::slot) >= least_memory(programs).of(Region::slot));
  // By hand: 3x3x2x8, 8 and 8, 128x12 and 12, 12x3 and 3 elements; each padded to 4.
  CHECK(without.memory.of(Region::parameters) == 4 * (144 + 8 + 8 + 1536 + 12 + 36 + 4));
  CHECK(without.memory.of(Region::states) == 2 * without.memory.of(Region::parameters));
}

TEST_CASE("the work of ops is known without kernels") {
  const TestJob job(network);
  const Compiled compiled = compile_without_kernels({job.training(16)}, {});
  const PlacedProgram& placed = compiled.programs[0];
  std::map<std::string, OpWork> forward;
  int normalisations = 0;
  for (const PlacedOp& op : placed.segment(placed.program.schedule[0].segment).ops) {
    forward[op.op.name] = work_of(placed, op.op);
    CHECK(op.workspace == -1);
    if (!op.op.def->kind().starts_with("batch_norm")) continue;
    // Also with pooling, batch normalisation reads x twice: for the statistics and for the output.
    std::int64_t bytes = placed.tensor(op.op.inputs[0]).layout.bytes;
    for (const auto& tensors : {op.op.inputs, op.op.outputs}) {
      for (const TensorId id : tensors) bytes += placed.tensor(id).layout.bytes;
    }
    CHECK(forward[op.op.name].bytes == bytes);
    ++normalisations;
  }
  CHECK(normalisations == 1);
  const OpWork dense = forward.at("dense_1");
  CHECK(dense.flops == 2.0 * 16 * 12 * 3);
  CHECK(dense.bytes == 4 * (16 * 12 + 12 * 3 + 3 + 16 * 3));
}

TEST_CASE("a look-up in a table moves the rows that are read, and its gradient those that are written") {
  TestJob job("layers: [{embedding: {input_dim: 1000, output_dim: 8}}, global_average_pooling1d, {dense: {units: 3}}]");
  job.spec.inputs[0] = {"", {5}, {DType::int32, {}, {}}};
  const Compiled compiled = compile_without_kernels({job.training(16)}, {});
  const PlacedProgram& placed = compiled.programs[0];
  std::map<std::string, std::int64_t> bytes;
  for (const PlacedSegment& segment : placed.segments) {
    for (const PlacedOp& op : segment.ops) bytes[std::string(op.op.def->kind())] = work_of(placed, op.op).bytes;
  }
  const std::int64_t numbers = 4 * 16 * 5, rows = 8 * numbers, table = 4 * 1000 * 8;  // in bytes
  CHECK(bytes.at("embedding") == numbers + rows + rows);
  CHECK(bytes.at("embedding_grad") == numbers + rows + table + 2 * rows);
}

TEST_CASE("without training there are no gradients of parameters and no states") {
  const TestJob job(network);
  const auto backend = make_backend("cpu", {});
  KernelChoices choices;
  const Program training = job.training(8);
  const Compiled alone = compile({job.evaluation(8), job.evaluation(0)}, *backend, choices);
  const ParameterLayout& flat = training.flat;
  CHECK(alone.memory.of(Region::gradients) == 4 * (flat.gradient_count - flat.trainable_count));
  CHECK(alone.memory.of(Region::states) == 0);
  CHECK(alone.memory.sums == 0);
  const Compiled with_training = compile({training, job.evaluation(8)}, *backend, choices);
  CHECK(with_training.memory.of(Region::gradients) == 4 * flat.gradient_count);
  CHECK(with_training.memory.sums == 4 * flat.trainable_count);
}

TEST_CASE("tensors that are alive together have memory of their own") {
  const TestJob job(network);
  const Compiled compiled = compile_without_kernels({job.training(8, 2)}, {.on_host = false, .asynchronous = true});
  const PlacedProgram& placed = compiled.programs[0];
  CHECK(compiled.memory.of(Region::batches) == 2 * compiled.memory.staging.bytes);
  for (const PlacedSegment& segment : placed.segments) {
    for (const PlacedOp& op : segment.ops) {
      const auto in_place = op.op.def->in_place();
      for (std::size_t i = 0; i < op.op.inputs.size(); ++i) {
        for (std::size_t o = 0; o < op.op.outputs.size(); ++o) {
          const PlacedTensor &in = placed.tensor(op.op.inputs[i]), &out = placed.tensor(op.op.outputs[o]);
          const bool may = op.op.def->trait() == OpTrait::alias || op.op.inputs[i] == op.op.outputs[o] ||
                           std::any_of(in_place.begin(), in_place.end(), [&](const InPlace& pair) {
                             return pair.input == static_cast<int>(i) && pair.output == static_cast<int>(o);
                           });
          if (may || in.region != Region::slot || out.region != Region::slot) continue;
          CAPTURE(op.op.name, i, o);
          CHECK((in.offset + in.layout.bytes <= out.offset || out.offset + out.layout.bytes <= in.offset));
        }
      }
    }
  }
}

}  // namespace trainctl::compile_test
