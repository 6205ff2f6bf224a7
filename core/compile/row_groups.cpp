// Finds the ops of row groups.
#include "core/compile/row_groups.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "core/expression/scalar_graph.h"
#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/elementwise/elementwise.h"
#include "core/graph/ops/reduce.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/graph/ops/row_group.h"

namespace trainctl {
namespace {

constexpr std::int64_t least_values = 16384;  // of the largest tensor of a group; smaller ones stay in the cache anyway
constexpr std::int64_t longest_row = 8192;    // values of the longest row
constexpr std::size_t most_ops = 32, most_tensors = 64;  // of a group
constexpr std::size_t most_distant = 64;                 // ops between the first one of a group and another one

bool may_join(const Op& op) { return op.get_if<Elementwise>() != nullptr || op.get_if<Reduce>() != nullptr; }

// The same op, as Elementwise if it is a sum without an activation, such as a sum of gradients. It gets no name: that
// of a sum of gradients is a tensor's, and a sum may join the ops of any layer.
Op in_elementwise_form(const Op& op, const Program& program) {
  const auto* add = op.get_if<Add>();
  if (add == nullptr || add->function.kind != ActivationKind::none) return op;
  ScalarGraph graph;
  const int sum[] = {graph.apply(ScalarFunction::add, graph.of_input(0), graph.of_input(1))};
  Op made = op;
  made.name.clear();
  made.def = std::make_shared<Elementwise>(graph.program(sum), std::vector{program.tensor(op.outputs[0]).type.dtype});
  return made;
}

bool has_kernel(DType dtype) {
  return dtype == DType::float32 || dtype == DType::bfloat16 || dtype == DType::int32 || dtype == DType::uint8;
}

bool contains(const std::vector<TensorId>& ids, TensorId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// Groups the ops of one segment.
class SegmentGroups {
 public:
  SegmentGroups(Program& program, std::size_t segment)
      : program_(program), segment_(segment), is_taken_(program.segments[segment].ops.size(), false) {
    for (const Op& op : program.segments[segment].ops) {
      ops_.push_back(in_elementwise_form(op, program));
      for (const TensorId id : op.outputs) ++writes_[id];
    }
  }

  std::vector<Op> grouped() {
    std::vector<Op> made;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (is_taken_[i]) continue;
      const std::vector<std::size_t> members = may_join(ops_[i]) ? members_from(i) : std::vector<std::size_t>{};
      if (members.size() < 2) {
        made.push_back(original(i));
        continue;
      }
      for (const std::size_t early : earlier_) made.push_back(original(early));
      for (const Members& taken : {members, earlier_}) {
        for (const std::size_t op : taken) is_taken_[op] = true;
      }
      made.push_back(joined(members));
    }
    return made;
  }

 private:
  using Members = std::vector<std::size_t>;

  const Op& original(std::size_t op) const { return program_.segments[segment_].ops[op]; }

  // The ops of a group that begins with op `first`. The group is where the first op is. Small ops between, on which the
  // group may depend, are moved before it (earlier_).
  Members members_from(std::size_t first) {
    earlier_.clear();
    if (ops_[first].name.empty()) return {};
    Members members{first};
    std::set<TensorId> written_between, read_between;
    std::int64_t dimensions = 0;
    for (std::size_t j = first; j < std::min(ops_.size(), first + most_distant) && members.size() < most_ops; ++j) {
      if (is_taken_[j]) continue;
      const Op& op = ops_[j];
      const auto among = [this](const std::set<TensorId>& tensors) {
        return [this, &tensors](TensorId id) { return tensors.contains(id) || tensors.contains(memory(id)); };
      };
      const bool overtakes = std::ranges::any_of(op.inputs, among(written_between)) ||
                             std::ranges::any_of(op.outputs, among(written_between)) ||
                             std::ranges::any_of(op.outputs, among(read_between));
      if (j != first && !overtakes && is_tiny(op) && !reads_members(members, op)) {
        earlier_.push_back(j);
        continue;
      }
      const bool is_of_layer = op.name == ops_[first].name || op.name.empty();
      const bool is_near = j == first || reads_small_tensors(op) || is_connected(members, op);
      if (may_join(op) && is_of_layer && !overtakes && is_near) {
        Members with = members;
        if (j != first) with.push_back(j);
        if (const std::int64_t found = row_dimensions(with, dimensions); found > 0) {
          members = std::move(with);
          dimensions = found;
          continue;
        }
      }
      if (j == first) return {};
      if (!overtakes && is_small(op) && !reads_members(members, op)) {
        earlier_.push_back(j);
        continue;
      }
      const bool writes_memory = op.def->trait() != OpTrait::alias;
      for (const TensorId id : op.outputs) written_between.insert(writes_memory ? memory(id) : id);
      for (const TensorId id : op.inputs) read_between.insert(memory(id));
    }
    row_dimensions_ = dimensions;
    return is_large(members) ? members : Members{};
  }

  // Whether an op takes little time, and only writes tensors that no other op writes.
  bool is_small(const Op& op) const {
    if (op.get_if<Reshape>() == nullptr && !may_join(op)) return false;
    return std::all_of(op.outputs.begin(), op.outputs.end(), [&](TensorId id) {
      return writes_.at(id) == 1 && program_.tensor(id).role == Role::activation &&
             (op.def->trait() == OpTrait::alias || shape(id).count() < least_values);
    });
  }

  bool reads_small_tensors(const Op& op) const {
    return std::ranges::all_of(op.inputs, [&](TensorId id) { return shape(id).count() < least_values; });
  }

  // Whether all tensors of a small op are small. Not in the group, it can also be read by way of a reshape.
  bool is_tiny(const Op& op) const { return is_small(op) && reads_small_tensors(op); }

  bool reads_members(const Members& members, const Op& op) const {
    return std::any_of(members.begin(), members.end(), [&](std::size_t member) {
      return std::any_of(op.inputs.begin(), op.inputs.end(),
                         [&](TensorId id) { return contains(ops_[member].outputs, id); });
    });
  }

  bool is_read_by(const Members& members, TensorId id) const {
    return std::any_of(members.begin(), members.end(),
                       [&](std::size_t member) { return contains(ops_[member].inputs, id); });
  }

  bool is_connected(const Members& members, const Op& op) const {
    return std::any_of(members.begin(), members.end(), [&](std::size_t member) {
      return std::any_of(op.inputs.begin(), op.inputs.end(), [&](TensorId id) {
        return contains(ops_[member].outputs, id) || contains(ops_[member].inputs, id);
      });
    });
  }

  // The tensor whose memory a tensor has: itself, unless it is an alias.
  TensorId memory(TensorId id) const {
    while (program_.tensor(id).alias_of != no_tensor) id = program_.tensor(id).alias_of;
    return id;
  }

  const Shape& shape(TensorId id) const { return program_.tensor(id).type.shape; }

  // The largest number of leading dimensions, at most `before` (0: any), that may count the rows of all members; 0 if
  // there is none.
  std::int64_t row_dimensions(const Members& members, std::int64_t before) const {
    const Op& op = ops_[members[0]];
    const Shape& whole = op.get_if<Reduce>() != nullptr ? shape(op.inputs[0]) : shape(op.outputs[0]);
    for (std::int64_t count = before > 0 ? before : whole.rank(); count > 0; --count) {
      if (fit(members, std::span(whole.sizes()).first(static_cast<std::size_t>(count)))) return count;
    }
    return 0;
  }

  bool fit(const Members& members, std::span<const std::int64_t> rows) const {
    std::int64_t count = 1;
    for (const std::int64_t size : rows) count *= size;
    if (count < 2) return false;
    std::map<TensorId, bool> for_all_rows;
    const auto agrees = [&](TensorId id, bool whole) {
      const Tensor& tensor = program_.tensor(id);
      if (!has_kernel(tensor.type.dtype) || (!whole && tensor.type.shape.count() / count > longest_row)) return false;
      return for_all_rows.try_emplace(id, whole).first->second == whole;
    };
    for (const std::size_t member : members) {
      const Op& op = ops_[member];
      const auto whole = inputs_of_all_rows(*op.def, types_of(op.inputs, program_.tensors), rows);
      if (!whole) return false;
      const DType read = program_.tensor(op.inputs[0]).type.dtype;
      if (op.get_if<Reduce>() != nullptr && read != DType::float32 && read != DType::bfloat16) return false;
      for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        if (!agrees(op.inputs[i], (*whole)[i])) return false;
      }
      const bool sums_rows = is_sum_of_rows(*op.def, types_of(op.inputs, program_.tensors)[0], std::ssize(rows));
      for (const TensorId id : op.outputs) {
        if (writes_.at(id) != 1 || contains(op.inputs, id) || !agrees(id, sums_rows)) return false;
        if (sums_rows && is_read_by(members, id)) return false;
      }
    }
    return for_all_rows.size() <= most_tensors;
  }

  bool is_large(const Members& members) const {
    return std::any_of(members.begin(), members.end(), [&](std::size_t member) {
      const Op& op = ops_[member];
      const auto large = [&](TensorId id) { return shape(id).count() >= least_values; };
      return std::any_of(op.inputs.begin(), op.inputs.end(), large) ||
             std::any_of(op.outputs.begin(), op.outputs.end(), large);
    });
  }

  // Whether anything but the members reads a tensor that a member writes.
  bool is_read_outside(TensorId id, const Members& members) const {
    if (program_.tensor(id).role != Role::activation || program_.tensor(id).alias_of != no_tensor) return true;
    if (contains(program_.step.predictions, id)) return true;
    for (std::size_t s = 0; s < program_.segments.size(); ++s) {
      const std::vector<Op>& ops = s == segment_ ? ops_ : program_.segments[s].ops;
      const bool written = std::any_of(ops.begin(), ops.end(), [&](const Op& op) { return contains(op.outputs, id); });
      const bool is_variant = s != segment_ && program_.segments[s].phase == program_.segments[segment_].phase;
      if (is_variant && written) continue;  // it has a group of its own
      for (std::size_t i = 0; i < ops.size(); ++i) {
        const bool is_member = s == segment_ && std::find(members.begin(), members.end(), i) != members.end();
        if (!is_member && contains(ops[i].inputs, id)) return true;
      }
    }
    return false;
  }

  Op joined(const Members& members) const {
    auto def = std::make_shared<RowGroup>();
    def->row_dimensions = static_cast<int>(row_dimensions_);
    Op made{nullptr, {}, {}, ops_[members[0]].name, ops_[members[0]].location};
    std::vector<TensorId> written, between;
    std::set<TensorId> sums;  // over all rows, which are always outputs
    for (const std::size_t member : members) {
      const Op& op = ops_[member];
      const TensorType& read = program_.tensor(op.inputs[0]).type;
      if (is_sum_of_rows(*op.def, read, row_dimensions_)) sums.insert(op.outputs[0]);
      for (const TensorId id : ops_[member].inputs) {
        if (!contains(written, id) && !contains(made.inputs, id)) made.inputs.push_back(id);
      }
      written.insert(written.end(), ops_[member].outputs.begin(), ops_[member].outputs.end());
    }
    for (const TensorId id : written) {
      (sums.contains(id) || is_read_outside(id, members) ? made.outputs : between).push_back(id);
    }
    if (made.outputs.empty()) made.outputs = std::exchange(between, {});
    std::map<TensorId, int> numbers;
    for (const auto* ids : {&made.inputs, &made.outputs, &between}) {
      for (const TensorId id : *ids) numbers.emplace(id, static_cast<int>(numbers.size()));
    }
    for (const std::size_t member : members) {
      SubOp sub{ops_[member].def, {}, {}};
      for (const TensorId id : ops_[member].inputs) sub.inputs.push_back(numbers.at(id));
      for (const TensorId id : ops_[member].outputs) sub.outputs.push_back(numbers.at(id));
      def->ops.push_back(std::move(sub));
    }
    def->inputs_count = static_cast<int>(made.inputs.size());
    def->outputs_count = static_cast<int>(made.outputs.size());
    made.def = std::move(def);
    return made;
  }

  const Program& program_;
  std::size_t segment_;
  std::vector<Op> ops_;  // in elementwise form
  std::vector<bool> is_taken_;
  Members earlier_;  // ops that are moved before the group that members_from() found last
  std::map<TensorId, int> writes_;
  std::int64_t row_dimensions_ = 0;  // of the group that members_from() found last
};

}  // namespace

void group_rows(Program& program) {
  std::vector<std::vector<Op>> grouped;
  for (std::size_t s = 0; s < program.segments.size(); ++s) {
    const Phase phase = program.segments[s].phase;
    const bool computes = phase == Phase::forward || phase == Phase::backward;
    grouped.push_back(computes ? SegmentGroups(program, s).grouped() : program.segments[s].ops);
  }
  for (std::size_t s = 0; s < grouped.size(); ++s) program.segments[s].ops = std::move(grouped[s]);
}

}  // namespace trainctl
