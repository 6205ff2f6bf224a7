// Computes and checks the placements of a program's tensors, op by op.
#include "core/program/placements.h"

#include <algorithm>

#include "core/base/format.h"
#include "core/graph/ops/collectives.h"
#include "core/graph/ops/training/update.h"
#include "core/program/members.h"

namespace trainctl {
namespace {

// The placements of all tensors along one axis of the mesh, followed through a step.
class AxisWalk {
 public:
  AxisWalk(const Program& program, MeshAxis axis) : program_(program), axis_(axis), members_(program) { begin(); }

  void run() {
    std::vector<int> unchanged_at(program_.segments.size(), -1);
    for (const ScheduleItem& item : program_.schedule) {
      int& unchanged = unchanged_at[static_cast<std::size_t>(item.segment)];
      if (unchanged == changes_) continue;  // all tensors are placed as in the previous micro-batch
      const int before = changes_;
      for (const Op& op : program_.segment(item.segment).ops) run(op);
      if (changes_ == before) unchanged = changes_;
    }
    check_kept();
    check_results();
  }

  // The placement with which a tensor is first written: replicated if no op writes it, varying if its members differ.
  Placement made(TensorId id) const {
    const std::vector<TensorId>& members = members_.of(id);
    if (members.empty()) return made_[index(id)].value_or(replicated);
    const Placement first = made(members.front());
    const bool alike = std::all_of(members.begin(), members.end(), [&](TensorId m) { return made(m) == first; });
    return alike ? first : varying;
  }

 private:
  const Tensor& tensor(TensorId id) const { return members_.tensor(id); }

  // Sets the initial placements of tensors that have none yet: first all tensors, later new members.
  void begin() {
    while (current_.size() < members_.count()) {
      current_.push_back(start_of(static_cast<TensorId>(current_.size())));
      made_.push_back(current_.back());
    }
  }

  // The placement of a tensor before the step; empty if an op of the step writes the tensor before any op reads it.
  std::optional<Placement> start_of(TensorId id) const {
    if (id == program_.step.stop_request) return varying;
    switch (tensor(id).role) {
      case Role::input:
        if (axis_ != MeshAxis::data) return declared(id, replicated);
        return tensor(id).type.shape.rank() > 0 ? split_along(0) : replicated;
      case Role::parameter:
      case Role::statistic:
      case Role::state:
      case Role::copy:
      case Role::scalar:
      case Role::cache:
        return declared(id, replicated);
      default:
        return std::nullopt;
    }
  }

  void run(const Op& op) {
    if (works_on_mixed_regions(op)) {
      run_by_parameter(op);
    } else if (std::any_of(op.inputs.begin(), op.inputs.end(),
                           [this](TensorId id) { return members_.is_bucket(id); })) {
      run_by_member(op);
    } else {
      run(op, op.inputs, op.outputs);
    }
  }

  // Whether the op reads the region of gradients or parameters, or writes the parameters, while members of the region
  // have different placements, or are all split by layers, which states and averages are then, too.
  bool works_on_mixed_regions(const Op& op) const {
    const auto is_mixed = [this](TensorId id) {
      if (!members_.is_region(id) || id == no_tensor) return false;
      const std::vector<TensorId>& members = members_.of(id);
      return std::any_of(members.begin(), members.end(), [&](TensorId member) {
        const std::optional<Placement>& placement = current_[index(member)];
        const bool split = placement && placement->kind == Placement::Kind::split && axis_ == MeshAxis::tensor;
        return split || placement != current_[index(members.front())];
      });
    };
    const auto is_mixed_result = [&](TensorId id) { return id == program_.step.parameters && is_mixed(id); };
    return std::any_of(op.inputs.begin(), op.inputs.end(), is_mixed) ||
           std::any_of(op.outputs.begin(), op.outputs.end(), is_mixed_result);
  }

  // Follows such an op as one op for each trainable parameter, with the gradient and the parameter instead of the
  // regions. The optimizer's states and averages are placed like the parameters.
  void run_by_parameter(const Op& op) {
    const StepTensors& step = program_.step;
    for (const FlatEntry& entry : program_.flat.parameters) {
      if (entry.gradient == no_tensor) continue;
      const auto of_entry = [&](std::vector<TensorId> ids) {
        for (TensorId& id : ids) {
          const bool state =
              id == step.averages || std::find(step.states.begin(), step.states.end(), id) != step.states.end();
          if (id == step.gradients) id = entry.gradient;
          if (state || id == step.parameters) id = entry.parameter;
        }
        return ids;
      };
      run(op, of_entry(op.inputs), of_entry(op.outputs));
    }
  }

  // Ops on buckets work element by element, and are followed as one op for each member. The outputs of such an op have
  // the layout of the bucket and members of their own.
  void run_by_member(const Op& op) {
    if (op.get_if<SumOfSquares>() != nullptr ||
        op.get_if<ChunkSquares>() != nullptr) {  // reads all members of all inputs
      for (TensorId input : op.inputs) {
        const std::vector<TensorId>& members = members_.of(input);
        for (TensorId id : members.empty() ? std::span(&input, 1) : std::span(members)) run(op, {&id, 1}, op.outputs);
      }
      return;
    }
    const TensorId bucket =
        *std::find_if(op.inputs.begin(), op.inputs.end(), [this](TensorId id) { return members_.is_bucket(id); });
    const std::size_t count = members_.of(bucket).size();
    for (TensorId output : op.outputs) {
      if (members_.of(output).empty()) members_.add_like(output, bucket);
    }
    begin();
    for (TensorId input : op.inputs) place_received(bucket, input);
    for (std::size_t m = 0; m < count; ++m) {
      const auto of_member = [&](std::vector<TensorId> ids) {
        for (TensorId& id : ids) {
          if (!members_.is_bucket(id)) continue;
          require(members_.of(id).size() == count,
                  format("{} reads buckets with different numbers of members", op.def->kind()));
          id = members_.of(id)[m];
        }
        return ids;
      };
      run(op, of_member(op.inputs), of_member(op.outputs));
    }
  }

  // Gives a tensor that another stage sent for such a bucket the same members, with the placements of the bucket's
  // members.
  void place_received(TensorId bucket, TensorId received) {
    const bool is_alike = tensor(received).type == tensor(bucket).type && tensor(received).role == Role::activation;
    if (!is_alike || members_.is_bucket(received)) return;
    members_.add_like(received, bucket);
    begin();
    for (std::size_t m = 0; m < members_.of(bucket).size(); ++m) {
      current_[index(members_.of(received)[m])] = current_[index(members_.of(bucket)[m])];
    }
  }

  void run(const Op& op, std::span<const TensorId> inputs, std::span<const TensorId> outputs) {
    std::vector<Placement> given;
    std::vector<std::optional<Placement>> held;
    std::vector<TensorType> input_types, output_types;
    std::vector<std::string_view> input_names, output_names;
    for (TensorId input : inputs) {
      given.push_back(read(op, input));
      input_types.push_back(tensor(input).type);
      input_names.emplace_back(tensor(input).name);
    }
    for (TensorId output : outputs) {
      held.push_back(held_by(output));
      output_types.push_back(tensor(output).type);
      output_names.emplace_back(tensor(output).name);
    }
    const OutputPlacements result =
        op.def->placements({axis_, given, input_types, output_types, held, input_names, output_names});
    if (!result.problem.empty()) fail(op, result.problem);
    require(result.outputs.size() == outputs.size(),
            format("{} does not return a placement for each of its outputs", op.def->kind()));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (inputs.empty()) {
        write_declared(outputs[i], result.outputs[i]);
      } else {
        write(outputs[i], result.outputs[i]);
      }
    }
  }

  // The placement that the strategy set on the tensor, or `otherwise` if it set none. Used for outputs of ops without
  // inputs and for outputs from another rank, since no input determines their placement.
  Placement declared(TensorId id, const Placement& otherwise) const {
    const auto axis = static_cast<std::size_t>(axis_);
    const std::vector<Placement>& placements = tensor(id).placements;
    return axis < placements.size() ? placements[axis] : otherwise;
  }

  Placement read(const Op& op, TensorId id) const {
    const std::vector<TensorId>& members = members_.of(id);
    const TensorId first = members.empty() ? id : members.front();
    for (TensorId member : members.empty() ? std::span(&id, 1) : std::span(members)) {
      const std::optional<Placement>& placement = current_[index(member)];
      if (!placement) fail(op, format("no op has written {}", tensor(member).name));
      if (placement == current_[index(first)]) continue;
      fail(op, format("of the members of {}, {} is {} and {} is {}", tensor(id).name, tensor(first).name,
                      to_string(*current_[index(first)]), tensor(member).name, to_string(*placement)));
    }
    const Placement& placement = *current_[index(first)];
    return placement == replicated && is_summand(op, first) ? partial : placement;
  }

  // Whether the op is a collective along this axis that reads a summand of each rank: a stage of a pipeline computes
  // the sums of its own outputs, and holds zeros for the outputs of other stages.
  bool is_summand(const Op& op, TensorId id) const {
    const auto* collective = op.get_if<Collective>();
    const Role role = tensor(id).role;
    return axis_ == MeshAxis::pipeline && collective != nullptr && collective->axis == axis_ &&
           (role == Role::reduced || role == Role::scalar) && declared(id, replicated) == partial;
  }

  // The current placement of a tensor; empty if it is unwritten or its members differ.
  std::optional<Placement> held_by(TensorId id) const {
    const std::vector<TensorId>& members = members_.of(id);
    if (members.empty()) return current_[index(id)];
    const std::optional<Placement>& first = current_[index(members.front())];
    const bool alike =
        std::all_of(members.begin(), members.end(), [&](TensorId m) { return current_[index(m)] == first; });
    return alike ? first : std::nullopt;
  }

  // Writes an output of an op without inputs: the placement that the strategy set replaces `replicated`, since no input
  // determines it.
  void write_declared(TensorId id, const Placement& placement) {
    for (TensorId member : members_.of(id)) write_declared(member, placement);
    if (members_.of(id).empty()) write(id, placement == replicated ? declared(id, placement) : placement);
  }

  void write(TensorId id, const Placement& placement) {
    for (TensorId member : members_.of(id)) write(member, placement);
    std::optional<Placement>& current = current_[index(id)];
    if (current == placement) return;
    if (!made_[index(id)]) made_[index(id)] = placement;
    current = placement;
    ++changes_;
  }

  void check_kept() const {
    for (std::size_t i = 0; i < current_.size(); ++i) {
      const Tensor& kept = tensor(static_cast<TensorId>(i));
      const bool stays = kept.role == Role::parameter || kept.role == Role::statistic || kept.role == Role::state;
      if (!stays || !members_.of(static_cast<TensorId>(i)).empty() || current_[i] == made_[i]) continue;
      fail(kept, format("is {} before a step and {} after it", to_string(*made_[i]), to_string(*current_[i])));
    }
  }

  void check_results() const {
    const StepTensors& step = program_.step;
    std::vector<TensorId> results = step.losses;
    results.insert(results.end(), {step.count, step.agree, step.gradient_norm});
    results.insert(results.end(), step.metrics.begin(), step.metrics.end());
    const bool host_adds = program_.find(Phase::update) < 0 && axis_ == MeshAxis::data;
    for (TensorId id : results) {
      if (id == no_tensor) continue;
      const std::optional<Placement>& placement = current_[index(id)];
      if (placement == replicated || (host_adds && placement == partial)) continue;
      fail(tensor(id), placement ? format("is {} where the host reads it", to_string(*placement))
                                 : "is read by the host, but no op has written it");
    }
  }

  [[noreturn]] void fail(const Op& op, const std::string& problem) const {
    throw Error(
        ErrorKind::internal, location_of(program_, op),
        format("{} '{}' of '{}' on the {} axis: {}", op.def->kind(), op.name, program_.name, name_of(axis_), problem));
  }
  [[noreturn]] void fail(const Tensor& of, const std::string& problem) const {
    throw Error(ErrorKind::internal, of.location,
                format("'{}' of '{}' on the {} axis {}", of.name, program_.name, name_of(axis_), problem));
  }

  const Program& program_;
  MeshAxis axis_;
  Members members_;
  std::vector<std::optional<Placement>> current_, made_;  // current placements; placements at the first write
  int changes_ = 0;                                       // how often an entry of current_ has changed
};

}  // namespace

bool declared_split(const Tensor& tensor, MeshAxis axis) {
  const auto a = static_cast<std::size_t>(axis);
  return a < tensor.placements.size() && tensor.placements[a].kind == Placement::Kind::split;
}

bool is_first_holder(const Tensor& tensor, const MeshRank& rank) {
  return rank.along(MeshAxis::tensor) == 0 || declared_split(tensor, MeshAxis::tensor);
}

bool is_first_holder(const Program& program, const MeshRank& rank, const FlatEntry& entry) {
  if (!entry.stages.empty() && entry.stages.front() != rank.along(MeshAxis::pipeline)) return false;
  return is_first_holder(program.tensor(entry.parameter), rank);
}

SourceLocation location_of(const Program& program, const Op& op) {
  if (op.location.known()) return op.location;
  const Members members(program);
  for (const auto* list : {&op.inputs, &op.outputs}) {
    for (TensorId id : *list) {
      if (program.tensor(id).location.known()) return program.tensor(id).location;
      for (TensorId member : members.of(id)) {
        if (program.tensor(member).location.known()) return program.tensor(member).location;
      }
    }
  }
  return {};
}

void check_placements(Program& program, const Mesh& mesh) {
  if (mesh.ranks() == 1) return;
  std::vector<std::vector<Placement>> placements(program.tensors.size(), std::vector<Placement>(mesh_axes));
  for (const MeshAxis axis : all_mesh_axes) {
    if (mesh.size(axis) == 1) continue;
    AxisWalk walk(program, axis);
    walk.run();
    for (std::size_t i = 0; i < placements.size(); ++i) {
      placements[i][static_cast<std::size_t>(axis)] = walk.made(static_cast<TensorId>(i));
    }
  }
  for (std::size_t i = 0; i < placements.size(); ++i) program.tensors[i].placements = std::move(placements[i]);
}

}  // namespace trainctl
