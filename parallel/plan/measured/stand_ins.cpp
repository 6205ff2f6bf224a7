// Creates random batches and communicators without peers.
#include "parallel/plan/measured/stand_ins.h"

#include <algorithm>
#include <functional>

#include "core/graph/ops/collectives.h"
#include "core/graph/ops/embedding.h"
#include "core/graph/ops/losses/linear_cross_entropy.h"
#include "core/graph/ops/losses/losses.h"
#include "core/program/program.h"
#include "core/tensor/random_values.h"
#include "parallel/comm/communicators.h"

namespace trainctl {
namespace {

constexpr std::int64_t byte_values = 256;
constexpr std::int64_t max_numbers = std::int64_t{1} << 30;

TensorId original_of(const Program& program, TensorId id) {
  while (program.tensor(id).alias_of != no_tensor) id = program.tensor(id).alias_of;
  return id;
}

// Returns the upper bound of the integers in a tensor: the number of rows of the embedding, or of classes of the loss,
// that reads it; 2 if neither reads it.
std::int64_t numbers_below(const Program& program, TensorId tensor) {
  std::int64_t below = max_numbers;
  const auto reads = [&](const Op& op, std::size_t input) {
    return op.inputs.size() > input && original_of(program, op.inputs[input]) == tensor;
  };
  const auto shape = [&](const Op& op, std::size_t input) { return program.tensor(op.inputs[input]).type.shape; };
  for (const Segment& segment : program.segments) {
    for (const Op& op : segment.ops) {
      if (op.get_if<Embedding>() != nullptr && reads(op, 0)) below = std::min(below, shape(op, 1)[0]);
      const auto* loss = op.get_if<Loss>();
      const bool takes_classes = (loss != nullptr && !loss->of_sums) || op.get_if<ClassSums>() != nullptr;
      if (takes_classes && reads(op, 1)) below = std::min(below, shape(op, 0).back());
      const auto* fused = op.get_if<LinearCrossEntropy>();
      if (fused != nullptr && reads(op, fused->targets()))
        below = std::min(below, shape(op, 1)[fused->transposed ? 0 : 1]);
    }
  }
  return below == max_numbers ? 2 : std::max<std::int64_t>(below, 1);
}

// Writes the count of samples into the results that the stages of a pipeline add up.
std::function<void(View)> count_of_last_stage(const PlacedProgram& program, Backend& backend) {
  return [&program, &backend](View results) {
    const TensorId count = program.program.step.count;
    if (count == no_tensor) return;
    const PlacedTensor& placed = program.tensor(count);
    for (const PlacedSegment& segment : program.segments) {
      for (const PlacedOp& op : segment.ops) {
        const auto* reduce = op.op.get_if<AllReduce>();
        if (reduce == nullptr || reduce->axis != MeshAxis::pipeline) continue;
        const PlacedTensor& bucket = program.tensor(op.op.outputs[0]);
        const std::int64_t offset = placed.offset - bucket.offset;
        if (bucket.region != placed.region || offset < 0 || offset >= results.bytes()) continue;
        if (program.program.tensor(op.op.outputs[0]).type.shape.count() != results.count) continue;
        const auto samples = static_cast<float>(program.program.micro_batch_samples * program.program.micro_batches);
        const auto stream = backend.compute_stream();
        backend.copy(results.as<std::byte>() + offset, &samples, sizeof samples, *stream);
        stream->synchronize();
      }
    }
  };
}

}  // namespace

RandomBatch::RandomBatch(const Program& program, Backend& backend) {
  const auto below = [&](TensorId id) {
    if (id == no_tensor) return std::int64_t{1};
    return program.tensor(id).type.dtype == DType::uint8 ? byte_values : numbers_below(program, id);
  };
  for (const TensorId id : program.batch.inputs) batch_.inputs.push_back(add(program, id, below(id), backend));
  for (const TensorId id : program.batch.targets) batch_.targets.push_back(add(program, id, below(id), backend));
  batch_.weights = add(program, program.batch.weights, 1, backend);
  std::fill_n(batch_.weights.as<float>(), batch_.weights.count, 1.0f);
  batch_.samples = add(program, program.batch.samples, max_numbers, backend);
  batch_.count = batch_.global_count = program.micro_batch_samples * program.micro_batches;
}

View RandomBatch::add(const Program& program, TensorId tensor, std::int64_t below, Backend& backend) {
  if (tensor == no_tensor) return {};
  const TensorType& type = program.tensor(tensor).type;
  memory_.push_back(backend.allocate_host(type.bytes() * program.micro_batches));
  const View values{memory_.back().get(), type.dtype, type.shape.count() * program.micro_batches};
  fill_random(values, memory_.size(), below);
  return values;
}

LoopbackAxes::LoopbackAxes(const MeshRank& rank, const PlacedProgram& program, Backend& backend, Communicator& memory) {
  for (const MeshAxis axis : all_mesh_axes) {
    const auto a = static_cast<std::size_t>(axis);
    const bool alone = rank.mesh.ranks() == 1 && axis == MeshAxis::data;
    if (rank.size(axis) == 1 && !alone) continue;
    const bool counts = axis == MeshAxis::pipeline;
    owned_[a] = loopback_communicator(rank.along(axis), rank.size(axis), backend, memory,
                                      counts ? count_of_last_stage(program, backend) : std::function<void(View)>());
    axes_[a] = owned_[a].get();
  }
}

}  // namespace trainctl
