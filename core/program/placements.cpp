// Placements of a program's tensors, followed op by op.
#include "core/program/placements.h"

#include <algorithm>

#include "core/base/format.h"
#include "core/graph/ops/collectives.h"
#include "core/graph/ops/rounded_sum.h"

namespace trainctl {
namespace {

std::size_t index(TensorId id) { return static_cast<std::size_t>(id); }

// By tensor: the tensors that lie within its memory, the members of a bucket or of a flat region.
std::vector<std::vector<TensorId>> members_of(const Program& program) {
  std::vector<std::vector<TensorId>> members;
  for (const Tensor& tensor : program.tensors) members.push_back(tensor.members);
  const auto add = [&](TensorId region, auto list) {
    if (region != no_tensor && program.tensor(region).members.empty()) list(members[index(region)]);
  };
  const auto reduced = [&](std::vector<TensorId>& list) {
    for (const FlatPlace& place : program.flat.reduced) list.push_back(place.tensor);
  };
  add(program.step.gradients, [&](std::vector<TensorId>& list) {
    for (const FlatEntry& entry : program.flat.parameters) {
      if (entry.gradient != no_tensor) list.push_back(entry.gradient);
    }
    reduced(list);
  });
  add(program.step.sums, reduced);
  add(program.step.parameters, [&](std::vector<TensorId>& list) {
    for (const FlatEntry& entry : program.flat.parameters) list.push_back(entry.parameter);
  });
  return members;
}

// The placements of all tensors along one axis of the mesh, followed through a step.
class AxisWalk {
 public:
  AxisWalk(const Program& program, MeshAxis axis) : program_(program), axis_(axis), members_(members_of(program)) {
    for (std::size_t i = 0; i < program.tensors.size(); ++i) lies_.push_back(start_of(static_cast<TensorId>(i)));
    made_ = lies_;
  }

  void run() {
    std::vector<int> unchanged_at(program_.segments.size(), -1);
    for (const ScheduleItem& item : program_.schedule) {
      int& unchanged = unchanged_at[static_cast<std::size_t>(item.segment)];
      if (unchanged == changes_) continue;  // a later micro-batch whose tensors are all placed as for the one before
      const int before = changes_;
      for (const Op& op : program_.segment(item.segment).ops) run(op);
      if (changes_ == before) unchanged = changes_;
    }
    check_kept();
    check_results();
  }

  // The placement of a tensor where it is written: replicated where no op writes it, varying where its members differ.
  Placement made(TensorId id) const {
    const std::vector<TensorId>& members = members_[index(id)];
    if (members.empty()) return made_[index(id)].value_or(replicated);
    const Placement first = made(members.front());
    const bool alike = std::all_of(members.begin(), members.end(), [&](TensorId m) { return made(m) == first; });
    return alike ? first : varying;
  }

 private:
  // The placement of a tensor before the step; nothing where an op of the step writes it.
  std::optional<Placement> start_of(TensorId id) const {
    const Tensor& tensor = program_.tensor(id);
    if (id == program_.step.stop_request) return varying;
    switch (tensor.role) {
      case Role::input:
        if (axis_ != MeshAxis::data) return stated(id, replicated);
        return tensor.type.shape.rank() > 0 ? split_along(0) : replicated;
      case Role::parameter:
      case Role::statistic:
      case Role::state:
      case Role::copy:
      case Role::scalar:
        return stated(id, replicated);
      default:
        return std::nullopt;
    }
  }

  void run(const Op& op) {
    // A collective acts on each member of a bucket alone.
    if (op.inputs.size() == 1 && op.inputs == op.outputs && !members_[index(op.inputs[0])].empty()) {
      for (TensorId member : members_[index(op.inputs[0])]) run(op, {&member, 1}, {&member, 1});
    } else if (works_on_mixed_regions(op)) {
      run_by_parameter(op);
    } else {
      run(op, op.inputs, op.outputs);
    }
  }

  // Whether the op works on the region of gradients or parameters, and what lies there is placed in several ways.
  bool works_on_mixed_regions(const Op& op) const {
    const auto is_mixed = [this](TensorId id) {
      const bool region = id == program_.step.gradients || id == program_.step.parameters;
      if (!region || id == no_tensor) return false;
      const std::vector<TensorId>& members = members_[index(id)];
      return std::any_of(members.begin(), members.end(),
                         [&](TensorId member) { return lies_[index(member)] != lies_[index(members.front())]; });
    };
    return std::any_of(op.inputs.begin(), op.inputs.end(), is_mixed);
  }

  // Follows such an op as one op for each parameter that trains: its gradient and its values in the place of the
  // regions. The optimizer's states lie as the parameters do.
  void run_by_parameter(const Op& op) {
    const StepTensors& step = program_.step;
    for (const FlatEntry& entry : program_.flat.parameters) {
      if (entry.gradient == no_tensor) continue;
      const auto of_entry = [&](std::vector<TensorId> ids) {
        for (TensorId& id : ids) {
          const bool state = std::find(step.states.begin(), step.states.end(), id) != step.states.end();
          if (id == step.gradients) id = entry.gradient;
          if (state || id == step.parameters) id = entry.parameter;
        }
        return ids;
      };
      run(op, of_entry(op.inputs), of_entry(op.outputs));
    }
  }

  void run(const Op& op, std::span<const TensorId> inputs, std::span<const TensorId> outputs) {
    std::vector<Placement> given;
    std::vector<std::optional<Placement>> held;
    std::vector<TensorType> input_types, output_types;
    std::vector<std::string_view> input_names, output_names;
    for (TensorId input : inputs) {
      given.push_back(read(op, input));
      input_types.push_back(program_.tensor(input).type);
      input_names.emplace_back(program_.tensor(input).name);
    }
    for (TensorId output : outputs) {
      held.push_back(held_by(output));
      output_types.push_back(program_.tensor(output).type);
      output_names.emplace_back(program_.tensor(output).name);
    }
    const OutputPlacements result =
        op.def->placements({axis_, given, input_types, output_types, held, input_names, output_names});
    if (!result.problem.empty()) fail(op, result.problem);
    require(result.outputs.size() == outputs.size(), format("{} places each of its outputs", op.def->kind()));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (inputs.empty()) {
        write_stated(outputs[i], result.outputs[i]);
      } else {
        write(outputs[i], result.outputs[i]);
      }
    }
  }

  // The placement that the strategy stated on the tensor, or `otherwise` where it stated none. For outputs of ops
  // without inputs or from another rank, whose placement follows from no input.
  Placement stated(TensorId id, const Placement& otherwise) const {
    const auto axis = static_cast<std::size_t>(axis_);
    const std::vector<Placement>& placements = program_.tensor(id).placements;
    return axis < placements.size() ? placements[axis] : otherwise;
  }

  Placement read(const Op& op, TensorId id) const {
    const std::vector<TensorId>& members = members_[index(id)];
    const TensorId first = members.empty() ? id : members.front();
    for (TensorId member : members.empty() ? std::span(&id, 1) : std::span(members)) {
      const std::optional<Placement>& placement = lies_[index(member)];
      if (!placement) fail(op, format("nothing has written {}", program_.tensor(member).name));
      if (placement == lies_[index(first)]) continue;
      if (op.get_if<RoundSummands>() != nullptr) return varying;  // which another axis carries as it is
      fail(op, format("of what {} holds, {} is {} and {} is {}", program_.tensor(id).name, program_.tensor(first).name,
                      to_string(*lies_[index(first)]), program_.tensor(member).name, to_string(*placement)));
    }
    const Placement& lies = *lies_[index(first)];
    return lies == replicated && is_summand(op, first) ? partial : lies;
  }

  // Whether a collective along this axis reads a sum to which the other ranks add what they have: a stage of a pipeline
  // computes the sums of its own outputs, and holds zeros for those of other stages.
  bool is_summand(const Op& op, TensorId id) const {
    const auto* collective = op.get_if<Collective>();
    return axis_ == MeshAxis::pipeline && collective != nullptr && collective->axis == axis_ &&
           program_.tensor(id).role == Role::reduced && stated(id, replicated) == partial;
  }

  // The placement of a tensor at this moment; nothing where it is unwritten or its members differ.
  std::optional<Placement> held_by(TensorId id) const {
    const std::vector<TensorId>& members = members_[index(id)];
    if (members.empty()) return lies_[index(id)];
    const std::optional<Placement>& first = lies_[index(members.front())];
    const bool alike =
        std::all_of(members.begin(), members.end(), [&](TensorId m) { return lies_[index(m)] == first; });
    return alike ? first : std::nullopt;
  }

  // Of an op without inputs: what the strategy stated takes the place of `replicated`, since no input says otherwise.
  void write_stated(TensorId id, const Placement& placement) {
    for (TensorId member : members_[index(id)]) write_stated(member, placement);
    if (members_[index(id)].empty()) write(id, placement == replicated ? stated(id, placement) : placement);
  }

  void write(TensorId id, const Placement& placement) {
    if (placement == varying && !members_[index(id)].empty()) return;  // each member lies as before
    for (TensorId member : members_[index(id)]) write(member, placement);
    std::optional<Placement>& lies = lies_[index(id)];
    if (lies == placement) return;
    if (!made_[index(id)]) made_[index(id)] = placement;
    lies = placement;
    ++changes_;
  }

  void check_kept() const {
    for (std::size_t i = 0; i < program_.tensors.size(); ++i) {
      const Tensor& tensor = program_.tensors[i];
      const bool stays = tensor.role == Role::parameter || tensor.role == Role::statistic || tensor.role == Role::state;
      if (!stays || !members_[i].empty() || lies_[i] == made_[i]) continue;
      fail(tensor, format("is {} before a step and {} after it", to_string(*made_[i]), to_string(*lies_[i])));
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
      const std::optional<Placement>& placement = lies_[index(id)];
      if (placement == replicated || (host_adds && placement == partial)) continue;
      fail(program_.tensor(id), placement ? format("is {} where the host reads it", to_string(*placement))
                                          : "is read by the host, and nothing has written it");
    }
  }

  [[noreturn]] void fail(const Op& op, const std::string& problem) const {
    throw Error(
        ErrorKind::internal, place_of(program_, op),
        format("{} '{}' of '{}' on the {} axis: {}", op.def->kind(), op.name, program_.name, name_of(axis_), problem));
  }
  [[noreturn]] void fail(const Tensor& tensor, const std::string& problem) const {
    throw Error(ErrorKind::internal, tensor.place,
                format("'{}' of '{}' on the {} axis {}", tensor.name, program_.name, name_of(axis_), problem));
  }

  const Program& program_;
  MeshAxis axis_;
  std::vector<std::vector<TensorId>> members_;
  std::vector<std::optional<Placement>> lies_, made_;  // placements at this moment, and where each tensor was written
  int changes_ = 0;                                    // how often an entry of lies_ has changed
};

}  // namespace

bool states_split(const Tensor& tensor, MeshAxis axis) {
  const auto a = static_cast<std::size_t>(axis);
  return a < tensor.placements.size() && tensor.placements[a].kind == Placement::Kind::split;
}

Place place_of(const Program& program, const Op& op) {
  if (op.place.known()) return op.place;
  const std::vector<std::vector<TensorId>> members = members_of(program);
  for (const auto* list : {&op.inputs, &op.outputs}) {
    for (TensorId id : *list) {
      if (program.tensor(id).place.known()) return program.tensor(id).place;
      for (TensorId member : members[index(id)]) {
        if (program.tensor(member).place.known()) return program.tensor(member).place;
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
