// Data parallelism as a function from program to program.
#include "parallel/strategies/data.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/checked.h"
#include "core/base/format.h"
#include "core/graph/ops/collectives.h"

namespace trainctl {
namespace {

// A bucket as a tensor; finish gives it its place and size.
TensorId add_bucket(Program& program, std::vector<TensorId> gradients, std::size_t number) {
  const TensorId bucket = program.add(format("bucket {}", number), {}, DType::float32, Role::gradient);
  program.tensors[static_cast<std::size_t>(bucket)].members = std::move(gradients);
  return bucket;
}

Op all_reduce(const Program& program, TensorId bucket, bool asynchronous) {
  auto def = std::make_shared<AllReduce>(MeshAxis::data, asynchronous);
  return {std::move(def), {bucket}, {bucket}, program.tensor(bucket).name, {}};
}

Op wait(const Program& program, TensorId bucket) {
  return {std::make_shared<Wait>(), {bucket}, {bucket}, program.tensor(bucket).name, {}};
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

// How many ops of the segment run until all of the gradients are complete; none for a rank without samples.
std::size_t completed_after(const Segment& segment, const std::vector<TensorId>& gradients) {
  const auto writes = [&](const Op& op) {
    return std::find_first_of(op.outputs.begin(), op.outputs.end(), gradients.begin(), gradients.end()) !=
           op.outputs.end();
  };
  const auto last = std::find_if(segment.ops.rbegin(), segment.ops.rend(), writes);
  return static_cast<std::size_t>(segment.ops.rend() - last);
}

// Reduces buckets in the last micro-batch's backward segment, in their order.
void overlap_buckets(Program& program, const std::vector<TensorId>& buckets) {
  Segment& segment = last_backward(program);
  std::vector<Op> ops;
  std::size_t next = 0;
  for (TensorId bucket : buckets) {
    const std::size_t end = completed_after(segment, program.tensor(bucket).members);
    for (; next < end; ++next) ops.push_back(segment.ops[next]);
    ops.push_back(all_reduce(program, bucket, true));
  }
  ops.insert(ops.end(), segment.ops.begin() + static_cast<std::ptrdiff_t>(next), segment.ops.end());
  segment.ops = std::move(ops);
}

}  // namespace

std::vector<std::vector<TensorId>> gradient_buckets(const FlatLayout& layout, std::int64_t first_bytes,
                                                    std::int64_t bytes) {
  std::vector<std::vector<TensorId>> buckets;
  bool full = true;
  std::int64_t filled = 0;  // elements of the last bucket, gaps between its gradients included
  for (const FlatEntry& entry : layout.parameters) {
    if (entry.gradient == no_tensor) continue;
    if (std::exchange(full, false)) {
      buckets.emplace_back();
      filled = 0;
    }
    buckets.back().push_back(entry.gradient);
    filled = round_up(filled, flat_alignment) + entry.count;
    full = filled * size_of(DType::float32) >= (buckets.size() == 1 ? first_bytes : bytes);
  }
  return buckets;
}

Program reduce_gradients(Program program, const MeshRank& rank, const Strategy& strategy) {
  const int update = program.find(Phase::update);
  if (rank.size(MeshAxis::data) == 1 || update < 0) return program;
  std::int64_t first = strategy.options.first_bucket_size.bytes, further = strategy.options.bucket_size.bytes;
  if (!strategy.overlap) first = further = std::numeric_limits<std::int64_t>::max();
  std::vector<TensorId> buckets;
  for (std::vector<TensorId>& gradients : gradient_buckets(program.flat, first, further)) {
    buckets.push_back(add_bucket(program, std::move(gradients), buckets.size()));
  }
  if (buckets.empty()) return program;  // nothing trains
  const bool several = buckets.size() > 1;
  const TensorId last = buckets.back();
  if (several) overlap_buckets(program, {buckets.begin(), buckets.end() - 1});
  std::vector<Op>& ops = program.segments[static_cast<std::size_t>(update)].ops;
  ops.push_back(all_reduce(program, last, several));
  if (!several) return program;
  for (TensorId bucket : buckets) ops.push_back(wait(program, bucket));
  return program;
}

}  // namespace trainctl
