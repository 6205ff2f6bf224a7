// Adds the flat layout and the reductions of the values that all ranks base their decisions on.
#include "core/program/finish.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/graph/ops/collectives.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/graph/ops/training/restore.h"
#include "core/graph/ops/training/spectral_norm.h"
#include "core/graph/ops/training/update.h"
#include "core/optim/optimizer.h"
#include "core/program/norm_ops.h"

namespace trainctl {
namespace {

bool is_without_samples(const Program& program) { return program.micro_batch_samples == 0; }

// An all-reduce of a tensor over an axis, in place.
Op reduce(MeshAxis axis, TensorId tensor, std::string name) {
  return {std::make_shared<AllReduce>(axis), {tensor}, {tensor}, std::move(name), {}};
}

// Makes the sums the last members of the bucket that the update reduces last over the data axis. If it reduces no
// bucket, the sums become a bucket of their own, and its reduction is appended to `reductions`. `sums` does not contain
// sums that the strategy reduces.
void reduce_sums(Program& program, const std::vector<TensorId>& sums, std::vector<Op>& reductions) {
  const auto in_update = [&](const Op& op) {
    if (program.flat.by_player) return false;  // the sums of a player do not follow its gradients
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

// Sums the results of a step, and the agreement's flags, over the stages of the pipeline: a stage holds the results of
// its own outputs, and zeros for all others. The sums of running statistics are stored before the results in the
// layout; they belong to the stage and are not reduced.
void reduce_results(Program& program, std::vector<Op>& reductions) {
  const StepTensors& step = program.step;
  std::vector<TensorId> results = step.losses;
  results.insert(results.end(), step.metrics.begin(), step.metrics.end());
  results.push_back(step.count);  // the order of the bucket's members in the layout
  if (step.samples != step.count) results.push_back(step.samples);
  results.push_back(step.agree);
  const auto set_partial = [&](TensorId id) {
    program.tensors[index(id)].placements = placed(partial, {MeshAxis::data, MeshAxis::pipeline});
  };
  std::for_each(results.begin(), results.end(), set_partial);
  for (const TensorInSlot& in_slot : program.flat.in_slots) {
    if (std::find(results.begin(), results.end(), in_slot.like) != results.end()) set_partial(in_slot.tensor);
  }
  const TensorId bucket = program.add("results", {}, DType::float32, Role::reduced);
  program.tensors[static_cast<std::size_t>(bucket)].members = std::move(results);
  reductions.push_back(reduce(MeshAxis::pipeline, bucket, "results"));
}

// Sets the shape of each bucket in the region of gradients. A bucket extends from its first member to the start of the
// next bucket, gaps included; without a next bucket, to the end of its last member. The results are in the last bucket.
void size_buckets(Program& program) {
  std::vector<TensorId> buckets;
  std::set<std::int64_t> starts;
  for (std::size_t id = 0; id < program.tensors.size(); ++id) {
    const Tensor& tensor = program.tensors[id];
    if (tensor.members.empty() || (tensor.role != Role::gradient && tensor.role != Role::reduced)) continue;
    buckets.push_back(static_cast<TensorId>(id));
    starts.insert(program.flat.gradient_offset(tensor.members.front()));
  }
  for (const FlatBucket& bucket : program.flat.buckets) {
    if (program.flat.by_player) starts.insert(bucket.offset + bucket.count);
  }
  for (TensorId id : buckets) {
    Tensor& bucket = program.tensors[index(id)];
    const std::int64_t last = program.flat.gradient_offset(bucket.members.back());
    const auto next = starts.upper_bound(last);
    const std::int64_t end =
        next != starts.end() ? *next : last + program.tensor(bucket.members.back()).type.shape.count();
    bucket.type = {{end - program.flat.gradient_offset(bucket.members.front())}, DType::float32};
  }
}

// Adds the tensors of a player's bucket.
void add_regions_of_player(Program& program) {
  FlatBucket& own = *program.flat.own_bucket();
  const auto add = [&](const std::string& name, Role role) {
    return program.add(own.player + "/" + name, {own.count}, DType::float32, role);
  };
  own.gradient = add("gradients", Role::gradient);
  own.parameter = add("parameters", Role::parameter);
  for (const std::string& state : own.state_names) own.states.push_back(add(state, Role::state));
  if (program.flat.averages) own.average = add("averages", Role::state);
}

// Adds the tensors of the flat regions. Without shards, the only bucket consists of the same tensors.
void add_regions(Program& program) {
  StepTensors& step = program.step;
  ParameterLayout& flat = program.flat;
  const std::int64_t sums = flat.gradient_count - flat.trainable_count;
  const std::int64_t frozen = flat.parameter_count - flat.trainable_count;
  const std::int64_t parameters = flat.local_count(Quantity::parameters);
  const std::int64_t gradients = flat.local_count(Quantity::gradients);
  step.parameters = program.add("parameters", {parameters + frozen}, DType::float32, Role::parameter);
  if (flat.by_player) return add_regions_of_player(program);
  step.gradients = program.add("gradients", {gradients + sums}, DType::float32, Role::gradient);
  for (const std::string& state : flat.states) {
    step.states.push_back(program.add(state, {flat.local_count(Quantity::states)}, DType::float32, Role::state));
  }
  if (flat.averages) step.averages = program.add("averages", {parameters}, DType::float32, Role::state);
  if (flat.shares(Quantity::states)) return;
  FlatBucket& all = flat.buckets.front();
  all.gradient = step.gradients;
  all.parameter = step.parameters;
  all.states = step.states;
}

// Sets the gradients and sums of a rank without samples to zero, before the ops of the backward segment.
void zero_contribution(Program& program) {
  std::vector<TensorId> zeroed{program.step.gradients};
  if (const FlatBucket* own = program.flat.own_bucket()) {
    const TensorId sums = program.add("own sums", {}, DType::float32, Role::reduced);
    Tensor& tensor = program.tensors[index(sums)];
    for (const FlatTensor& sum : program.flat.reduced) tensor.members.push_back(sum.tensor);
    tensor.type.shape = {program.flat.gradient_count - program.flat.trainable_count};
    zeroed = {own->gradient, sums};
  }
  std::vector<Op>& ops = program.segments[static_cast<std::size_t>(program.find(Phase::backward))].ops;
  for (const TensorId id : zeroed) {
    auto zero = std::make_shared<ZeroGradients>(program.tensor(id).type.shape.count());
    ops.insert(ops.begin(), {std::move(zero), {}, {id}, "no samples", {}});
  }
}

// Appends the reductions of the values that all ranks base their decisions on: the sums and the agreement's flags and,
// if ranks hold different shards of the gradient, the sum of its squares.
void reduce_decisions(Program& program, const MeshRank& rank, TensorId squares, const std::vector<TensorId>& sums,
                      std::vector<Op>& reductions) {
  const std::vector<MeshAxis> axes = axes_of_norm(program.flat, rank);
  const bool by_chunk = program.shards.any();
  const bool shared = program.flat.shares(Quantity::states) && !by_chunk;
  if (shared) reductions.push_back(local_squares(program, rank, squares, axes));
  if (rank.size(MeshAxis::data) > 1) reduce_sums(program, sums, reductions);
  if (rank.size(MeshAxis::pipeline) > 1) reduce_results(program, reductions);
  // Ranks along the tensor axis have equal sums, but only some of these ranks may have a stop request or a loss that is
  // not finite: the agreement's flags are reduced over it too.
  if (rank.size(MeshAxis::tensor) > 1) reductions.push_back(reduce(MeshAxis::tensor, program.step.agree, "agree"));
  if (by_chunk) {
    std::ranges::move(squares_by_chunk(program, rank, squares, axes), std::back_inserter(reductions));
  } else if (!shared && !axes.empty()) {
    reductions.push_back(local_squares(program, rank, squares, axes));
  }
  for (MeshAxis axis : axes) {
    if (axis != MeshAxis::data) reductions.push_back(reduce(axis, squares, "gradient_squares"));
  }
}

// Adds the segment that divides kernels by their spectral norms, before all others. Returns the ops that give the
// kernels and vectors their earlier values if the step is skipped.
std::vector<Op> prepare_kernels(Program& program, const std::vector<GraphSpectralNorm>& norms) {
  std::vector<Op> restoring;
  if (norms.empty()) return restoring;
  std::vector<Op> ops;
  for (const GraphSpectralNorm& norm : norms) {
    const Tensor& kernel = program.tensor(norm.kernel);
    if (kernel.shard || program.flat.shares(Quantity::parameters)) {
      throw Error(ErrorKind::config, kernel.location,
                  format("spectral_normalization needs the whole kernel, but ranks hold shards of '{}'", kernel.name),
                  "use no tensor parallelism, no `strategy.shard: parameters` and no `strategy.parameter_dtype`");
    }
    for (const TensorId changed : {norm.kernel, norm.vector}) {
      const std::string name = program.tensor(changed).name;
      const SourceLocation location = program.tensor(changed).location;
      const TensorId before =
          program.add(name + "/before", program.tensor(changed).type.shape, DType::float32, Role::cache);
      ops.push_back({std::make_shared<Cast>(DType::float32), {changed}, {before}, name, location});  // a copy
      restoring.push_back({std::make_shared<Restore>(),
                           {before, program.step.agree, program.step.gradient_norm},
                           {changed},
                           name,
                           location});
    }
    ops.push_back({std::make_shared<SpectralNorm>(norm.iterations),
                   {norm.kernel, norm.vector},
                   {norm.kernel, norm.vector},
                   program.tensor(norm.kernel).name,
                   program.tensor(norm.kernel).location});
  }
  program.prepare(std::move(ops));
  return restoring;
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
  if (by_chunk || !axes_of_norm(program.flat, rank).empty()) {
    const bool is_sum =
        program.flat.shares(Quantity::states) && !by_chunk;  // a sum that the data axis reduces with the others
    squares = program.add("gradient_squares", {}, DType::float32, is_sum ? Role::reduced : Role::scalar);
    if (is_sum) program.flat.reduced.push_back({squares, 0});
  }
  program.flat.assign_offsets(program.tensors);
  add_regions(program);
  const ParameterLayout& flat = program.flat;
  if (is_without_samples(program)) zero_contribution(program);
  Segment& segment = program.segments[static_cast<std::size_t>(program.find(Phase::update))];
  std::vector<Op> reductions = std::move(segment.ops);
  std::vector<TensorId> unreduced;
  for (std::size_t i = reduced_before; i < flat.reduced.size(); ++i) unreduced.push_back(flat.reduced[i].tensor);
  if (update.optimizer.gradient_centralization) centralize_gradients(program, reductions);
  reduce_decisions(program, rank, squares, unreduced, reductions);
  size_buckets(program);
  std::vector<Op> updating = update_ops(program, update, std::move(reductions), squares);
  std::vector<Op> restoring = prepare_kernels(program, update.spectral_norms);
  const auto norm = std::ranges::find(updating, program.step.gradient_norm,
                                      [](const Op& op) { return op.outputs.empty() ? no_tensor : op.outputs[0]; });
  require(norm != updating.end(), "an update has no gradient norm");
  updating.insert(norm + 1, std::make_move_iterator(restoring.begin()), std::make_move_iterator(restoring.end()));
  program.segments[static_cast<std::size_t>(program.find(Phase::update))].ops = std::move(updating);
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
  program.flat.assign_offsets(program.tensors);
  program.step.parameters = program.add("parameters", {program.flat.parameter_count}, DType::float32, Role::parameter);
  return program;
}

}  // namespace trainctl
