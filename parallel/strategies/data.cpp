// Data parallelism as a function from program to program.
#include "parallel/strategies/data.h"

#include <algorithm>
#include <iterator>

#include "core/base/format.h"
#include "core/graph/ops/collectives.h"
#include "core/graph/ops/update.h"

namespace trainctl {
namespace {

Placement placement_of(const Tensor& tensor) {
  switch (tensor.role) {
    case Role::activation:
    case Role::input:
      return {Placement::Kind::split, 0};
    case Role::gradient:
    case Role::reduced:
      return {Placement::Kind::partial, 0};
    default:
      return {};
  }
}

Op all_reduce(const Program& program, const std::vector<Bucket>& buckets, std::size_t b) {
  const TensorId gradients = program.step.gradients;
  auto def = std::make_shared<AllReduce>(static_cast<int>(b), buckets[b].offset, buckets[b].count);
  return {std::move(def), {gradients}, {gradients}, format("bucket {}", b), {}};
}

Op wait(const Program& program, std::size_t b) {
  const TensorId gradients = program.step.gradients;
  return {std::make_shared<WaitBucket>(static_cast<int>(b)), {gradients}, {gradients}, format("bucket {}", b), {}};
}

// The segment of the last micro-batch's backward pass, a copy of its own where earlier micro-batches run it too.
Segment& last_backward(Program& program) {
  std::vector<ScheduleItem>& schedule = program.schedule;
  const auto is_backward = [&](const ScheduleItem& item) {
    return program.segment(item.segment).phase == Phase::backward;
  };
  const auto last = std::find_if(schedule.rbegin(), schedule.rend(), is_backward);
  require(last != schedule.rend(), "a training program has a backward pass");
  const auto uses = std::count_if(schedule.begin(), schedule.end(),
                                  [&](const ScheduleItem& item) { return item.segment == last->segment; });
  if (uses > 1) {
    program.segments.push_back({Phase::backward, Variant::last, program.segment(last->segment).ops});
    last->segment = static_cast<int>(program.segments.size()) - 1;
  }
  return program.segments[static_cast<std::size_t>(last->segment)];
}

// Behind which op of the segment a bucket is complete.
std::size_t completed_by(const Program& program, const Segment& segment, const Bucket& bucket) {
  std::vector<TensorId> gradients{program.step.gradients};
  for (const FlatEntry& entry : program.flat.parameters) {
    const bool inside = entry.offset >= bucket.offset && entry.offset < bucket.offset + bucket.count;
    if (entry.gradient != no_tensor && inside) gradients.push_back(entry.gradient);
  }
  const auto writes = [&](const Op& op) {
    return std::find_first_of(op.outputs.begin(), op.outputs.end(), gradients.begin(), gradients.end()) !=
           op.outputs.end();
  };
  const auto last = std::find_if(segment.ops.rbegin(), segment.ops.rend(), writes);
  require(last != segment.ops.rend(), "the backward pass writes every gradient");
  return static_cast<std::size_t>(segment.ops.rend() - last) - 1;
}

// Inserts all buckets but the last into the last micro-batch's backward segment, in their order.
void overlap_buckets(Program& program, const std::vector<Bucket>& buckets) {
  Segment& segment = last_backward(program);
  std::vector<Op> ops;
  std::size_t next = 0;
  for (std::size_t b = 0; b + 1 < buckets.size(); ++b) {
    const std::size_t end = completed_by(program, segment, buckets[b]) + 1;
    for (; next < end; ++next) ops.push_back(segment.ops[next]);
    ops.push_back(all_reduce(program, buckets, b));
  }
  for (; next < segment.ops.size(); ++next) ops.push_back(segment.ops[next]);
  segment.ops = std::move(ops);
}

}  // namespace

std::vector<Bucket> gradient_buckets(const FlatLayout& layout, std::int64_t first_bytes, std::int64_t bytes) {
  std::vector<Bucket> buckets{{0, 0}};
  bool full = false;
  for (const FlatEntry& entry : layout.parameters) {
    if (entry.gradient == no_tensor) continue;
    if (full) {
      buckets.back().count = entry.offset - buckets.back().offset;
      buckets.push_back({entry.offset, 0});
    }
    Bucket& bucket = buckets.back();
    bucket.count = entry.offset + entry.count - bucket.offset;
    full = bucket.count * size_of(DType::float32) >= (buckets.size() == 1 ? first_bytes : bytes);
  }
  buckets.back().count = layout.gradient_count - buckets.back().offset;
  return buckets;
}

Program apply_data_parallel(Program program, const Mesh& mesh, const StrategyOptions& options, bool overlap) {
  for (Tensor& tensor : program.tensors) tensor.placements = {placement_of(tensor), Placement{}, Placement{}};
  const int update = program.find(Phase::update);
  if (mesh.data == 1 || update < 0) return program;

  std::vector<Bucket> buckets{{0, program.flat.gradient_count}};
  if (overlap) {
    buckets = gradient_buckets(program.flat, options.first_bucket_size.bytes, options.bucket_size.bytes);
    overlap_buckets(program, buckets);
  }
  std::vector<Op>& ops = program.segments[static_cast<std::size_t>(update)].ops;
  const auto agree = std::find_if(ops.begin(), ops.end(), [](const Op& op) { return op.get_if<Agree>() != nullptr; });
  require(agree != ops.end(), "the update begins with the agreement");
  std::vector<Op> inserted{all_reduce(program, buckets, buckets.size() - 1)};
  for (std::size_t b = 0; b < buckets.size(); ++b) inserted.push_back(wait(program, b));
  ops.insert(agree + 1, std::make_move_iterator(inserted.begin()), std::make_move_iterator(inserted.end()));
  return program;
}

}  // namespace trainctl
