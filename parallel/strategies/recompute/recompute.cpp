// Adds recomputation to a program.
#include "parallel/strategies/table.h"

#include <algorithm>
#include <map>
#include <utility>

#include "parallel/strategies/recompute/blocks.h"

namespace trainctl {
namespace {

// Removes the last blocks from the list, so that they are not recomputed: the backward pass runs them first, when the
// blocks before them hold only their outputs. Together the removed blocks may have at most the bytes of the largest
// remaining block.
void remove_last(std::vector<RecomputableBlock>& blocks) {
  std::vector<std::int64_t> largest{0};  // largest of the first n blocks
  for (const RecomputableBlock& block : blocks) largest.push_back(std::max(largest.back(), block.inside));
  std::int64_t held = 0;
  for (bool is_last = true; !blocks.empty(); is_last = false) {
    held += blocks.back().inside;
    if (!is_last && held > largest[blocks.size() - 1]) break;
    blocks.pop_back();
  }
}

class Recomputation {
 public:
  Recomputation(Program program, std::vector<RecomputableBlock> blocks)
      : program_(std::move(program)), blocks_(std::move(blocks)) {
    for (std::size_t b = 0; b < blocks_.size(); ++b) duplicate(blocks_[b], b);
  }

  Program run() {
    for (Segment& segment : program_.segments) {
      if (segment.phase == Phase::backward) insert_in(segment);
    }
    return std::move(program_);
  }

 private:
  // Adds tensors for the outputs of the block's recomputed ops.
  void duplicate(RecomputableBlock& block, std::size_t number) {
    std::map<TensorId, TensorId> recomputed;
    for (Op& op : block.ops) {
      for (TensorId& input : op.inputs) {
        if (const auto found = recomputed.find(input); found != recomputed.end()) input = found->second;
      }
      for (TensorId& output : op.outputs) {
        Tensor tensor = program_.tensor(output);
        tensor.name += "/again";
        if (const auto found = recomputed.find(tensor.alias_of); found != recomputed.end())
          tensor.alias_of = found->second;
        program_.tensors.push_back(std::move(tensor));
        const auto copy = static_cast<TensorId>(program_.tensors.size() - 1);
        if (block.activations.contains(output)) recomputed[output] = copy;
        output = copy;
      }
    }
    for (const auto& [id, copy] : recomputed) recomputed_[id] = {copy, number};
  }

  void insert_in(Segment& segment) {
    std::vector<bool> is_inserted(blocks_.size());
    std::vector<Op> ops;
    for (Op& op : segment.ops) {
      for (TensorId& input : op.inputs) {
        const auto found = recomputed_.find(input);
        if (found == recomputed_.end()) continue;
        const auto& [copy, block] = found->second;
        if (!is_inserted[block]) ops.insert(ops.end(), blocks_[block].ops.begin(), blocks_[block].ops.end());
        is_inserted[block] = true;
        input = copy;
      }
      ops.push_back(std::move(op));
    }
    segment.ops = std::move(ops);
  }

  Program program_;
  std::vector<RecomputableBlock> blocks_;
  // Copy and block of each recomputed activation.
  std::map<TensorId, std::pair<TensorId, std::size_t>> recomputed_;
};

}  // namespace

Program recompute_activations(Program program, const MeshRank&, const Strategy& strategy) {
  if (strategy.options.recompute == Recompute::none) return program;
  std::vector<RecomputableBlock> blocks = recomputable_blocks(program);
  if (strategy.options.recompute == Recompute::blocks) {
    remove_last(blocks);
  } else {
    std::erase_if(blocks, [&](const RecomputableBlock& block) { return !strategy.recomputed.contains(block.name); });
  }
  return Recomputation(std::move(program), std::move(blocks)).run();
}

}  // namespace trainctl
