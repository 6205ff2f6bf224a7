// Tries an op's placement rule with all combinations of split dimensions.
#include "parallel/strategies/tensor/ways.h"

#include <algorithm>
#include <utility>

namespace trainctl {
namespace {

std::vector<Placement> placements_of(const SplitDimensions& dimensions) {
  std::vector<Placement> placements;
  for (const auto& dimension : dimensions) placements.push_back(dimension ? split_along(*dimension) : replicated);
  return placements;
}

class Search {
 public:
  Search(const Op& op, const std::vector<Operand>& operands, const std::vector<TensorType>& outputs,
         const ShardPosition& ranks)
      : op_(op), operands_(operands), outputs_(outputs), ranks_(ranks) {}

  Way run() {
    if (!outputs_.empty()) extend({});
    return std::move(best_);
  }

 private:
  // Tries all combinations that begin with the given dimensions.
  void extend(SplitDimensions dimensions) {
    if (dimensions.size() == operands_.size()) return examine(dimensions);
    for (const auto& alternative : operands_[dimensions.size()].alternatives) {
      dimensions.push_back(alternative);
      extend(dimensions);
      dimensions.pop_back();
    }
  }

  void examine(const SplitDimensions& dimensions) {
    if (std::none_of(dimensions.begin(), dimensions.end(), [](const auto& split) { return split.has_value(); })) return;
    std::vector<TensorType> whole, shards;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      whole.push_back(operands_[i].type);
      shards.push_back(operands_[i].type);
      if (dimensions[i]) shards[i].shape[*dimensions[i]] = ranks_.size_of(operands_[i].type.shape[*dimensions[i]]);
    }
    std::shared_ptr<const OpDef> def = op_.def->on_shard(whole, dimensions, ranks_);
    if (def == nullptr) def = op_.def;
    // The shape rule is not called: an op that does not accept shards may have no shape for them (half of a group of
    // channels is not a group), and reports this in its placements.
    const OutputPlacements made =
        def->placements({MeshAxis::tensor, placements_of(dimensions), shards, outputs_, {}, {}, {}});
    if (!made.problem.empty()) return;
    const Sharing sharing = sharing_of(dimensions, made.outputs);
    if (sharing >= best_.sharing || !makes_shards(*def, shards, made.outputs)) return;
    best_ = {sharing, std::move(def), dimensions, {}};
    for (const Placement& output : made.outputs) {
      best_.outputs.push_back(output == partial ? std::nullopt : std::optional(output.dimension));
    }
  }

  // Whether the op makes the shards that its placements say. The shapes of shards alone may be ambiguous: a reshape of
  // 8 columns to 1 x 8 may split either dimension.
  bool makes_shards(const OpDef& def, const std::vector<TensorType>& inputs,
                    const std::vector<Placement>& outputs) const {
    const std::vector<TensorType> made = def.outputs(inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      Shape expected = outputs_[i].shape;
      if (outputs[i].kind == Placement::Kind::split) {
        std::int64_t& size = expected[outputs[i].dimension];
        size = ranks_.size_of(size);
      }
      if (made[i].shape != expected) return false;
    }
    return true;
  }

  Sharing sharing_of(const SplitDimensions& inputs, const std::vector<Placement>& outputs) const {
    bool splits_activation = false, splits_parameter = false, splits_matrix = false, splits_reused = false;
    bool has_whole = false;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Operand& operand = operands_[i];
      if (operand.is_parameter && !inputs[i]) {
        if (!operand.may_be_whole) return Sharing::none;
        has_whole = true;
        continue;
      }
      splits_activation = splits_activation || (inputs[i] && !operand.is_parameter);
      splits_parameter = splits_parameter || operand.is_parameter;
      splits_matrix = splits_matrix || (operand.is_parameter && operand.type.shape.rank() > 1);
      splits_reused = splits_reused || operand.is_reused;
    }
    if (has_whole && (splits_parameter || !splits_activation)) return Sharing::none;
    if (splits_activation && splits_reused) return Sharing::none;
    if (outputs.size() == 1 && outputs[0] == partial && !has_whole) {
      return splits_activation ? Sharing::sum : splits_matrix ? Sharing::begin_sum : Sharing::none;
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Placement& output = outputs[i];
      if (output.kind != Placement::Kind::split || !divides_alike(inputs, outputs_[i].shape[output.dimension])) {
        return Sharing::none;
      }
    }
    if (splits_activation) return Sharing::local;
    return splits_matrix ? Sharing::begin : Sharing::none;
  }

  // Whether the shards of an output's dimension of this size have equal sizes, or the sizes of an input's shards.
  bool divides_alike(const SplitDimensions& inputs, std::int64_t size) const {
    bool alike = size % ranks_.count == 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i]) continue;
      const std::int64_t input = operands_[i].type.shape[*inputs[i]];
      if (input % ranks_.count != 0 && input != size) return false;
      alike = alike || input == size;
    }
    return alike;
  }

  const Op& op_;
  const std::vector<Operand>& operands_;
  const std::vector<TensorType>& outputs_;
  const ShardPosition ranks_;
  Way best_;
};

}  // namespace

Way best_way(const Op& op, const std::vector<Operand>& operands, const std::vector<TensorType>& outputs,
             const ShardPosition& ranks) {
  Way best = Search(op, operands, outputs, ranks).run();
  const int bias = op.def->bias();
  if (bias < 0 || bias >= std::ssize(operands) || best.sharing <= Sharing::sum) return best;
  if (operands[static_cast<std::size_t>(bias)].type.shape.rank() > 1) return best;  // AddBias adds vectors
  std::vector<Operand> without_bias = operands;
  without_bias.erase(without_bias.begin() + bias);
  Way sum = Search(op, without_bias, outputs, ranks).run();
  return sum.sharing == Sharing::sum ? sum : best;
}

}  // namespace trainctl
