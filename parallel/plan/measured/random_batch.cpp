// Filling the parts of a batch by what the program does with them.
#include "parallel/plan/measured/random_batch.h"

#include <algorithm>

#include "core/graph/ops/embedding.h"
#include "core/graph/ops/losses/losses.h"
#include "core/program/program.h"
#include "core/tensor/random_values.h"

namespace trainctl {
namespace {

constexpr std::int64_t byte_values = 256;
constexpr std::int64_t most_numbers = std::int64_t{1} << 30;

TensorId original_of(const Program& program, TensorId id) {
  while (program.tensor(id).alias_of != no_tensor) id = program.tensor(id).alias_of;
  return id;
}

// The end of the whole numbers that the ops which read a tensor take: rows of an embedding, classes of a loss. 2 where
// none says so.
std::int64_t numbers_below(const Program& program, TensorId tensor) {
  std::int64_t below = most_numbers;
  const auto reads = [&](const Op& op, std::size_t input) {
    return op.inputs.size() > input && original_of(program, op.inputs[input]) == tensor;
  };
  const auto shape = [&](const Op& op, std::size_t input) { return program.tensor(op.inputs[input]).type.shape; };
  for (const Segment& segment : program.segments) {
    for (const Op& op : segment.ops) {
      if (op.get_if<Embedding>() != nullptr && reads(op, 0)) below = std::min(below, shape(op, 1)[0]);
      const bool takes_classes = op.get_if<Loss>() != nullptr || op.get_if<ClassSums>() != nullptr;
      if (takes_classes && reads(op, 1)) below = std::min(below, shape(op, 0).back());
    }
  }
  return below == most_numbers ? 2 : std::max<std::int64_t>(below, 1);
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
  batch_.samples = add(program, program.batch.samples, most_numbers, backend);
  batch_.count = batch_.global_count = program.micro_batch_samples * program.micro_batches;
}

View RandomBatch::add(const Program& program, TensorId tensor, std::int64_t below, Backend& backend) {
  if (tensor == no_tensor) return {};
  const TensorType& type = program.tensor(tensor).type;
  memory_.push_back(backend.allocate_host(type.bytes() * program.micro_batches));
  const View part{memory_.back().get(), type.dtype, type.shape.count() * program.micro_batches};
  fill_random(part, memory_.size(), below);
  return part;
}

}  // namespace trainctl
