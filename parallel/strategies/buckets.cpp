// Forms buckets of gradients and inserts their reductions.
#include "parallel/strategies/buckets.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/checked.h"
#include "core/base/format.h"
#include "core/graph/ops/collectives.h"

namespace trainctl {
namespace {

// Returns the number of ops of the segment up to the op that completes the last gradient; 0 for a rank without samples.
std::size_t completed_after(const Segment& segment, const std::vector<TensorId>& gradients) {
  const auto writes = [&](const Op& op) {
    return std::find_first_of(op.outputs.begin(), op.outputs.end(), gradients.begin(), gradients.end()) !=
           op.outputs.end();
  };
  const auto last = std::find_if(segment.ops.rbegin(), segment.ops.rend(), writes);
  return static_cast<std::size_t>(segment.ops.rend() - last);
}

}  // namespace

std::vector<std::vector<TensorId>> gradient_buckets(const ParameterLayout& layout, std::int64_t first_bytes,
                                                    std::int64_t bytes) {
  std::vector<std::vector<TensorId>> buckets;
  bool full = true;
  std::int64_t filled = 0;                   // elements of the last bucket, including gaps
  const std::vector<int>* stages = nullptr;  // stages that hold the bucket's parameters
  for (const FlatEntry& entry : layout.parameters) {
    if (entry.gradient == no_tensor) continue;
    full = full || entry.stages != *stages;
    stages = &entry.stages;
    if (std::exchange(full, false)) {
      buckets.emplace_back();
      filled = 0;
    }
    buckets.back().push_back(entry.gradient);
    filled = round_up(filled, flat_alignment) + entry.count;
    full = stages->empty() && filled * size_of(DType::float32) >= (buckets.size() == 1 ? first_bytes : bytes);
  }
  return buckets;
}

std::vector<std::vector<TensorId>> gradient_buckets(const ParameterLayout& layout, const StrategyOptions& options) {
  return gradient_buckets(layout, options.first_bucket_size.bytes, options.bucket_size.bytes);
}

void separate_vectors(std::vector<std::vector<TensorId>>& buckets, ParameterLayout& layout,
                      const std::vector<Tensor>& tensors) {
  std::vector<std::vector<TensorId>> separated;
  auto entry = layout.parameters.begin();
  for (const std::vector<TensorId>& bucket : buckets) {
    const auto end = entry + std::ssize(bucket);
    const auto vectors = std::stable_partition(
        entry, end, [&](const FlatEntry& of) { return !is_vector(tensors[index(of.parameter)]); });
    for (const auto& [first, last] : {std::pair{entry, vectors}, std::pair{vectors, end}}) {
      if (first == last) continue;
      separated.emplace_back();
      for (auto of = first; of != last; ++of) separated.back().push_back(of->gradient);
    }
    entry = end;
  }
  buckets = std::move(separated);
}

TensorId add_bucket(Program& program, std::vector<TensorId> gradients, std::size_t number) {
  const TensorId bucket = program.add(format("bucket {}", number), {}, DType::float32, Role::gradient);
  program.tensors[static_cast<std::size_t>(bucket)].members = std::move(gradients);
  return bucket;
}

std::int64_t elements_of(const Program& program, const std::vector<TensorId>& gradients) {
  std::int64_t count = 0;
  for (TensorId gradient : gradients) {
    count = round_up(count + program.tensor(gradient).type.shape.count(), flat_alignment);
  }
  return count;
}

Segment& last_backward(Program& program) {
  std::vector<ScheduleItem>& schedule = program.schedule;
  const auto is_backward = [&](const ScheduleItem& item) {
    return program.segment(item.segment).phase == Phase::backward;
  };
  const auto last = std::find_if(schedule.rbegin(), schedule.rend(), is_backward);
  require(last != schedule.rend(), "a training program has no backward pass");
  const auto uses = std::count_if(schedule.begin(), schedule.end(),
                                  [&](const ScheduleItem& item) { return item.segment == last->segment; });
  if (uses > 1) {
    program.segments.push_back({Phase::backward, Variant::last, program.segment(last->segment).ops});
    last->segment = static_cast<int>(program.segments.size()) - 1;
  }
  return program.segments[static_cast<std::size_t>(last->segment)];
}

void insert_after(const Program& program, const std::vector<TensorId>& buckets, const OpsOfBucket& ops,
                  Segment& segment) {
  std::vector<Op> result;
  std::size_t next = 0;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const std::size_t end = completed_after(segment, program.tensor(buckets[b]).members);
    for (; next < end; ++next) result.push_back(segment.ops[next]);
    for (Op& op : ops(b)) result.push_back(std::move(op));
  }
  result.insert(result.end(), segment.ops.begin() + static_cast<std::ptrdiff_t>(next), segment.ops.end());
  segment.ops = std::move(result);
}

Op wait_for(const Program& program, TensorId tensor) {
  return {std::make_shared<Wait>(), {tensor}, {tensor}, program.tensor(tensor).name, {}};
}

}  // namespace trainctl
