// Recomputation as a function from program to program.
#include "parallel/strategies/recompute/recompute.h"

#include <algorithm>
#include <map>
#include <utility>

#include "parallel/strategies/recompute/blocks.h"

namespace trainctl {
namespace {

// Leaves out the last blocks: their turn comes first in the backward pass, when the blocks before them hold nothing but
// their outputs. Together they may have as many bytes as the largest of the others has inside.
void leave_last(std::vector<RecomputableBlock>& blocks) {
  std::vector<std::int64_t> largest{0};  // of the first n blocks
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
  // Gives what the block's ops compute again tensors of its own.
  void duplicate(RecomputableBlock& block, std::size_t number) {
    std::map<TensorId, TensorId> again;
    for (Op& op : block.ops) {
      for (TensorId& input : op.inputs) {
        if (const auto found = again.find(input); found != again.end()) input = found->second;
      }
      for (TensorId& output : op.outputs) {
        Tensor tensor = program_.tensor(output);
        tensor.name += "/again";
        if (const auto found = again.find(tensor.alias_of); found != again.end()) tensor.alias_of = found->second;
        program_.tensors.push_back(std::move(tensor));
        const auto copy = static_cast<TensorId>(program_.tensors.size() - 1);
        if (block.activations.contains(output)) again[output] = copy;
        output = copy;
      }
    }
    for (const auto& [id, copy] : again) again_[id] = {copy, number};
  }

  void insert_in(Segment& segment) {
    std::vector<bool> is_there(blocks_.size());
    std::vector<Op> ops;
    for (Op& op : segment.ops) {
      for (TensorId& input : op.inputs) {
        const auto found = again_.find(input);
        if (found == again_.end()) continue;
        const auto& [copy, block] = found->second;
        if (!is_there[block]) ops.insert(ops.end(), blocks_[block].ops.begin(), blocks_[block].ops.end());
        is_there[block] = true;
        input = copy;
      }
      ops.push_back(std::move(op));
    }
    segment.ops = std::move(ops);
  }

  Program program_;
  std::vector<RecomputableBlock> blocks_;
  std::map<TensorId, std::pair<TensorId, std::size_t>> again_;  // by activation: its copy, and the block
};

}  // namespace

Program recompute_activations(Program program, const MeshRank&, const Strategy& strategy) {
  if (strategy.options.recompute == Recompute::none) return program;
  std::vector<RecomputableBlock> blocks = recomputable_blocks(program);
  if (strategy.options.recompute == Recompute::blocks) {
    leave_last(blocks);
  } else {
    std::erase_if(blocks, [&](const RecomputableBlock& block) { return !strategy.recomputed.contains(block.name); });
  }
  return Recomputation(std::move(program), std::move(blocks)).run();
}

}  // namespace trainctl
