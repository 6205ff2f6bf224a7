// Flat layout, and the reductions of what all ranks decide by.
#include "core/program/finish.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "core/graph/ops/collectives.h"
#include "core/graph/ops/training/update.h"
#include "core/program/flat_layout.h"
#include "core/program/placements.h"

namespace trainctl {
namespace {

bool is_without_samples(const Program& program) { return program.micro_batch_samples == 0; }

// An all-reduce of a tensor over an axis, in place.
Op reduce(MeshAxis axis, TensorId tensor, std::string name) {
  return {std::make_shared<AllReduce>(axis), {tensor}, {tensor}, std::move(name), {}};
}

// Makes the sums the last members of the bucket that the update reduces over the data axis. Where it reduces no bucket,
// the sums become a bucket of their own, whose reduction is appended to `reductions`. Sums that the strategy reduces
// are left out.
void reduce_sums(Program& program, const std::vector<TensorId>& sums, std::vector<Op>& reductions) {
  const auto in_update = [](const Op& op) {
    const auto* all_reduce = op.get_if<AllReduce>();
    return all_reduce != nullptr && all_reduce->axis == MeshAxis::data;
  };
  auto last = std::find_if(reductions.rbegin(), reductions.rend(), in_update);
  TensorId bucket = no_tensor;
  if (last != reductions.rend()) {
    bucket = last->inputs[0];
  } else {
    bucket = program.add("sums", {}, DType::float32, Role::reduced);
    reductions.push_back(reduce(MeshAxis::data, bucket, "sums"));
  }
  std::vector<TensorId>& members = program.tensors[static_cast<std::size_t>(bucket)].members;
  members.insert(members.end(), sums.begin(), sums.end());
}

// Sums the results of a step, and the agreement's flags, over the stages of the pipeline: a stage holds those of its
// own outputs, and zeros for all others. The sums of running statistics, which lie before the results, are the stage's
// own.
void reduce_results(Program& program, std::vector<Op>& reductions) {
  const StepTensors& step = program.step;
  std::vector<TensorId> results = step.losses;
  results.insert(results.end(), step.metrics.begin(), step.metrics.end());
  results.push_back(step.count);  // the bucket's members lie in this order
  if (step.samples != step.count) results.push_back(step.samples);
  results.push_back(step.agree);
  const auto state = [&](TensorId id) {
    program.tensors[static_cast<std::size_t>(id)].placements = {partial, partial, replicated};
  };
  std::for_each(results.begin(), results.end(), state);
  for (const SlotPlace& place : program.flat.in_slots) {
    if (std::find(results.begin(), results.end(), place.like) != results.end()) state(place.tensor);
  }
  const TensorId bucket = program.add("results", {}, DType::float32, Role::reduced);
  program.tensors[static_cast<std::size_t>(bucket)].members = std::move(results);
  reductions.push_back(reduce(MeshAxis::pipeline, bucket, "results"));
}

// Sets the shape of each bucket in the region of gradients: from its first member to the first member of the next
// bucket behind its last one, gaps included; where there is none, to its end. The results lie within the last bucket.
void size_buckets(Program& program) {
  std::vector<TensorId> buckets;
  std::set<std::int64_t> starts;
  for (std::size_t id = 0; id < program.tensors.size(); ++id) {
    const Tensor& tensor = program.tensors[id];
    if (tensor.members.empty() || (tensor.role != Role::gradient && tensor.role != Role::reduced)) continue;
    buckets.push_back(static_cast<TensorId>(id));
    starts.insert(program.flat.gradient_offset(tensor.members.front()));
  }
  for (TensorId id : buckets) {
    Tensor& bucket = program.tensors[static_cast<std::size_t>(id)];
    const std::int64_t last = program.flat.gradient_offset(bucket.members.back());
    const auto next = starts.upper_bound(last);
    const std::int64_t end =
        next != starts.end() ? *next : last + program.tensor(bucket.members.back()).type.shape.count();
    bucket.type = {{end - program.flat.gradient_offset(bucket.members.front())}, DType::float32};
  }
}

// The axes along which ranks hold other parts of the gradient when it has been reduced.
std::vector<MeshAxis> axes_of_parts(const FlatLayout& flat, const MeshRank& rank) {
  std::vector<MeshAxis> axes;
  if (flat.sharding.shares()) axes.push_back(MeshAxis::data);
  for (MeshAxis axis : {MeshAxis::pipeline, MeshAxis::tensor}) {
    if (rank.size(axis) > 1) axes.push_back(axis);
  }
  return axes;
}

// Whether this rank adds up the squares of a parameter's gradient: of one that several stages hold, or all ranks along
// the tensor axis, the first of them does.
bool counts(const Program& program, const MeshRank& rank, const FlatEntry& entry) {
  if (!entry.stages.empty() && entry.stages.front() != rank.along(MeshAxis::pipeline)) return false;
  return rank.along(MeshAxis::tensor) == 0 || states_split(program.tensor(entry.parameter), MeshAxis::tensor);
}

// The ranges of the gradient whose squares this rank adds up.
std::vector<InputRange> counted_ranges(const Program& program, const MeshRank& rank) {
  std::vector<InputRange> ranges;
  for (const FlatEntry& entry : program.flat.parameters) {
    if (entry.gradient == no_tensor || !counts(program, rank, entry)) continue;
    const std::int64_t end = round_up(entry.offset + entry.count, flat_alignment);  // zeros fill the gap
    const bool joins = !ranges.empty() && ranges.back().offset + ranges.back().count == entry.offset;
    if (!joins) ranges.push_back({0, entry.offset, 0});
    ranges.back().count = end - ranges.back().offset;
  }
  return ranges;
}

// The same where the rank has parts of buckets: where its parts have values, without the gaps between parameters, which
// are not always zero.
std::vector<InputRange> ranges_of_parts(const Program& program, const MeshRank& rank) {
  const FlatLayout& flat = program.flat;
  std::vector<InputRange> ranges;
  auto entry = flat.parameters.begin();
  for (std::size_t b = 0; b < flat.sharding.buckets.size(); ++b) {
    const FlatBucket& bucket = flat.sharding.buckets[b];
    const std::int64_t first = flat.part_offset(bucket), end = first + bucket.count / flat.sharding.shards;
    for (int i = 0; i < bucket.entries; ++i, ++entry) {
      const std::int64_t from = std::max(entry->offset, first), to = std::min(entry->offset + entry->count, end);
      if (from >= to || !counts(program, rank, *entry)) continue;
      const int input = static_cast<int>(b);
      const bool joins =
          !ranges.empty() && ranges.back().input == input && ranges.back().offset + ranges.back().count == from - first;
      if (!joins) ranges.push_back({input, from - first, 0});
      ranges.back().count += to - from;
    }
  }
  return ranges;
}

// What a stage in which nothing trains adds to sums of squares over the axes: zeros.
Op no_squares(Program& program, TensorId squares, std::int64_t count, const std::vector<MeshAxis>& axes) {
  std::vector<Placement>& placements = program.tensors[static_cast<std::size_t>(squares)].placements;
  placements.assign(mesh_axes, replicated);
  for (const MeshAxis axis : axes) placements[static_cast<std::size_t>(axis)] = partial;
  return {std::make_shared<ZeroGradients>(count), {}, {squares}, "gradient_squares", {}};
}

// The sum of the squares of this rank's part of the gradient.
Op squares_of_parts(Program& program, const MeshRank& rank, TensorId squares, const std::vector<MeshAxis>& axes) {
  if (program.flat.sharding.shares() && program.flat.trainable_count == 0) return no_squares(program, squares, 1, axes);
  std::vector<TensorId> parts;
  for (const FlatBucket& bucket : program.flat.sharding.buckets) parts.push_back(bucket.gradient);
  if (parts.empty()) parts.push_back(program.step.gradients);
  const bool shared = program.flat.sharding.shares();
  auto def =
      std::make_shared<SumOfSquares>(shared ? ranges_of_parts(program, rank) : counted_ranges(program, rank), axes);
  return {std::move(def), std::move(parts), {squares}, "gradient_squares", {}};
}

// The ops that add up the squares in reproducible mode: by chunks of each parameter, which no part of the gradient
// cuts, since parts and parameters begin at multiples of a chunk where replicas have parts.
std::vector<Op> squares_by_chunk(Program& program, const MeshRank& rank, TensorId squares,
                                 const std::vector<MeshAxis>& axes) {
  const FlatLayout& flat = program.flat;
  const bool shares = flat.sharding.shares();
  auto def = std::make_shared<ChunkSquares>();
  std::vector<TensorId> gradients;
  if (!shares) gradients.push_back(program.step.gradients);
  for (const FlatBucket& bucket : flat.sharding.buckets) gradients.push_back(bucket.gradient);
  std::int64_t chunk = 0;
  int bucket = -1, left = 0;  // of the bucket: parameters that follow
  for (const FlatEntry& entry : flat.parameters) {
    if (entry.gradient == no_tensor) continue;
    std::int64_t first = 0, end = flat.trainable_count;
    if (shares) {
      if (left == 0) left = flat.sharding.buckets[static_cast<std::size_t>(++bucket)].entries;
      --left;
      const FlatBucket& in = flat.sharding.buckets[static_cast<std::size_t>(bucket)];
      first = flat.part_offset(in);
      end = first + in.count / flat.sharding.shards;
    }
    const std::int64_t from = std::max(entry.offset, first), to = std::min(entry.offset + entry.count, end);
    if (from < to && counts(program, rank, entry)) {
      def->ranges.push_back(
          {{std::max(bucket, 0), from - first, to - from}, chunk + (from - entry.offset) / norm_chunk});
    }
    chunk += divide_up(entry.count, norm_chunk);
  }
  def->chunks = std::max<std::int64_t>(chunk, 1);
  def->axes = axes;
  const TensorId chunks = program.add("gradient_squares/chunks", {def->chunks}, DType::float32, Role::activation);
  std::vector<Op> ops;
  if (gradients.empty()) {
    ops.push_back(no_squares(program, chunks, def->chunks, axes));
  } else {
    ops.push_back({std::move(def), std::move(gradients), {chunks}, "gradient_squares", {}});
  }
  if (shares) ops.push_back(reduce(MeshAxis::data, chunks, "gradient_squares"));
  ops.push_back({std::make_shared<SumOfChunks>(), {chunks}, {squares}, "gradient_squares", {}});
  return ops;
}

// Appends the reductions of what all ranks decide by: the sums and the agreement's flags and, where ranks hold parts of
// the gradient, the sum of its squares.
void reduce_decisions(Program& program, const MeshRank& rank, TensorId squares, const std::vector<TensorId>& sums,
                      std::vector<Op>& reductions) {
  const std::vector<MeshAxis> axes = axes_of_parts(program.flat, rank);
  const bool by_chunk = program.shards.any();
  const bool shared = program.flat.sharding.shares() && !by_chunk;
  if (shared) reductions.push_back(squares_of_parts(program, rank, squares, axes));
  if (rank.size(MeshAxis::data) > 1) reduce_sums(program, sums, reductions);
  if (rank.size(MeshAxis::pipeline) > 1) reduce_results(program, reductions);
  // Ranks along the tensor axis have equal sums, but only some of them may have a stop request or a loss that is not
  // finite: the agreement's flags are reduced over it too.
  if (rank.size(MeshAxis::tensor) > 1) reductions.push_back(reduce(MeshAxis::tensor, program.step.agree, "agree"));
  if (by_chunk) {
    std::ranges::move(squares_by_chunk(program, rank, squares, axes), std::back_inserter(reductions));
  } else if (!shared && !axes.empty()) {
    reductions.push_back(squares_of_parts(program, rank, squares, axes));
  }
  for (MeshAxis axis : axes) {
    if (axis != MeshAxis::data) reductions.push_back(reduce(axis, squares, "gradient_squares"));
  }
}

}  // namespace

Program finish_training(Program program, const UpdateSpec& update, const MeshRank& rank) {
  require_whole_parameters(program, update);
  StepTensors& step = program.step;
  const std::size_t reduced_before = program.flat.sums_are_reduced ? program.flat.reduced.size() : 0;
  step.agree = program.add("agree", {agree_flags}, DType::float32, Role::reduced);
  program.flat.reduced.push_back({step.agree, 0});
  TensorId squares = no_tensor;
  const bool by_chunk = program.shards.any();
  if (by_chunk || !axes_of_parts(program.flat, rank).empty()) {
    const bool is_sum = program.flat.sharding.shares() && !by_chunk;  // which the data axis reduces with the others
    squares = program.add("gradient_squares", {}, DType::float32, is_sum ? Role::reduced : Role::scalar);
    if (is_sum) program.flat.reduced.push_back({squares, 0});
  }
  assign_offsets(program.flat, program.tensors);
  const FlatLayout& flat = program.flat;
  const std::int64_t sums = flat.gradient_count - flat.trainable_count;
  const std::int64_t frozen = flat.parameter_count - flat.trainable_count;
  step.parameters = program.add("parameters", {flat.own_parameters() + frozen}, DType::float32, Role::parameter);
  step.gradients = program.add("gradients", {flat.own_gradients() + sums}, DType::float32, Role::gradient);
  for (const std::string& state : flat.states) {
    step.states.push_back(program.add(state, {flat.own_states()}, DType::float32, Role::state));
  }
  if (flat.averages) step.averages = program.add("averages", {flat.own_parameters()}, DType::float32, Role::state);
  if (is_without_samples(program)) {
    std::vector<Op>& backward = program.segments[static_cast<std::size_t>(program.find(Phase::backward))].ops;
    auto zero = std::make_shared<ZeroGradients>(flat.own_gradients() + sums);
    backward.insert(backward.begin(), {std::move(zero), {}, {step.gradients}, "no samples", {}});
  }
  Segment& segment = program.segments[static_cast<std::size_t>(program.find(Phase::update))];
  std::vector<Op> reductions = std::move(segment.ops);
  std::vector<TensorId> unreduced;
  for (std::size_t i = reduced_before; i < flat.reduced.size(); ++i) unreduced.push_back(flat.reduced[i].tensor);
  reduce_decisions(program, rank, squares, unreduced, reductions);
  size_buckets(program);
  segment.ops = update_ops(program, update, std::move(reductions), squares);
  return program;
}

Program finish_evaluation(Program program, const Program& training) {
  StepTensors& step = program.step;
  step.parameters =
      program.add("parameters", training.tensor(training.step.parameters).type.shape, DType::float32, Role::parameter);
  const std::int64_t sums = training.flat.gradient_count - training.flat.trainable_count;
  step.sums = program.add("sums", {sums}, DType::float32, Role::reduced);
  if (is_without_samples(program)) {
    std::vector<Op>& forward = program.segments[static_cast<std::size_t>(program.find(Phase::forward))].ops;
    forward.push_back({std::make_shared<ZeroGradients>(sums), {}, {step.sums}, "no samples", {}});
  }
  return program;
}

Program finish_prediction(Program program) {
  assign_offsets(program.flat, program.tensors);
  program.step.parameters = program.add("parameters", {program.flat.parameter_count}, DType::float32, Role::parameter);
  return program;
}

}  // namespace trainctl
