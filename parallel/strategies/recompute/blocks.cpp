// Finds the blocks from the paths of layers, and their activations from the readers of each tensor.
#include "parallel/strategies/recompute/blocks.h"

#include <algorithm>
#include <limits>

#include "parallel/strategies/tensor/gather_again.h"

namespace trainctl {
namespace {

constexpr int no_block = -1;
// A further output of an op is kept if it has at most 1 / small_fraction of the bytes of the first output.
constexpr std::int64_t small_fraction = 16;

// Returns the innermost block that contains the op with this name; "" if there is none.
std::string enclosing_block(std::string path, const std::set<std::string>& blocks) {
  while (!blocks.contains(path)) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return "";
    path.resize(slash);
  }
  return path;
}

class BlockFinder {
 public:
  BlockFinder(const Program& program, const Segment& forward) : program_(program), ops_(forward.ops) {
    const std::size_t tensors = program.tensors.size();
    maker_.assign(tensors, no_block);
    reads_.resize(tensors);
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      for (TensorId id : ops_[i].outputs) maker_[index(id)] = static_cast<int>(i);
    }
    for (const Segment& segment : program.segments) {
      for (const Op& op : segment.ops) {
        for (TensorId id : op.inputs) {
          Reads& reads = reads_[index(owner(id))];
          if (&segment == &forward) reads.forward.push_back(static_cast<int>(&op - ops_.data()));
          if (segment.phase == Phase::backward) reads.backward.insert(op.name);
          if (&segment != &forward && segment.phase != Phase::backward) reads.otherwise = true;
        }
      }
    }
    cut();
  }

  std::vector<RecomputableBlock> run() {
    std::vector<RecomputableBlock> blocks;
    for (std::size_t first = 0, end = 0; first < ops_.size(); first = end) {
      while (end < ops_.size() && block_of_[end] == block_of_[first]) ++end;
      if (block_of_[first] == no_block) continue;
      RecomputableBlock block = examine(first, end);
      if (block.saved > 0) blocks.push_back(std::move(block));
    }
    return blocks;
  }

 private:
  // The readers of a tensor and its aliases.
  struct Reads {
    std::vector<int> forward;        // ops of the forward pass
    std::set<std::string> backward;  // names of ops of the backward pass
    bool otherwise = false;          // whether other ops read it, such as a send to another stage
  };

  const Tensor& tensor(TensorId id) const { return program_.tensor(id); }
  TensorId owner(TensorId id) const {
    while (tensor(id).alias_of != no_tensor) id = tensor(id).alias_of;
    return id;
  }
  std::int64_t bytes_of(TensorId id) const { return tensor(id).type.bytes(); }

  // Returns whether an op may be recomputed. Collectives may not, since all ranks of an axis would have to run them
  // again. Outputs that depend on the batch alone, such as normalized images, are kept like the batch.
  bool can_recompute(const Op& op) const {
    const auto is_input = [this](TensorId id) { return tensor(id).role == Role::input; };
    return op.def->trait() != OpTrait::collective && !std::all_of(op.inputs.begin(), op.inputs.end(), is_input);
  }

  // Sets the number of each op's block.
  void cut() {
    std::vector<std::string> enclosing;
    for (const Op& op : ops_) enclosing.push_back(enclosing_block(op.name, program_.blocks));
    block_of_.assign(ops_.size(), no_block);
    for (std::size_t first = 0, end = 0; first < ops_.size(); first = end) {
      if (!can_recompute(ops_[first]) && enclosing[first].empty()) {
        ++end;
        continue;
      }
      while (end < ops_.size() && enclosing[end] == enclosing[first]) ++end;
      if (enclosing[first].empty()) {
        cut_segments(first, end);
      } else {
        names_.push_back(enclosing[first]);
        std::fill(block_of_.begin() + static_cast<std::ptrdiff_t>(first),
                  block_of_.begin() + static_cast<std::ptrdiff_t>(end), static_cast<int>(names_.size()) - 1);
      }
    }
  }

  // Returns the bytes of an op's outputs that the backward pass reads.
  std::int64_t saved_bytes(const Op& op) const {
    std::int64_t bytes = 0;
    for (TensorId id : op.outputs) {
      if (owner(id) == id && !reads_[index(id)].backward.empty()) bytes += bytes_of(id);
    }
    return bytes;
  }

  // Divides ops outside of blocks into segments; a segment ends with the op that fills it (Chen et al., algorithm 3).
  // Tries segments of a k-th of all bytes for each k and chooses those that need the least memory.
  void cut_segments(std::size_t first, std::size_t end) {
    std::vector<std::int64_t> bytes;
    std::int64_t total = 0;
    for (std::size_t i = first; i < end; ++i) total += bytes.emplace_back(saved_bytes(ops_[i]));
    std::vector<std::size_t> best;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (std::int64_t k = 1; k <= std::ssize(bytes); ++k) {
      std::vector<std::size_t> ends;
      std::int64_t inside = 0, largest = 0, kept = 0;
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        inside += bytes[i];
        if (inside * k < total && i + 1 < bytes.size()) continue;
        ends.push_back(first + i + 1);
        kept += bytes[i];
        largest = std::max(largest, inside - bytes[i]);
        inside = 0;
      }
      if (kept + largest >= least) continue;
      least = kept + largest;
      best = std::move(ends);
    }
    for (std::size_t i = first; const std::size_t segment_end : best) {
      names_.push_back(ops_[i].name);
      for (; i < segment_end; ++i) block_of_[i] = static_cast<int>(names_.size()) - 1;
    }
  }

  // Returns whether the tensor, an output of an op of the block, stays in memory: it is a small further output, or it
  // is read by ops other than the block's ops and their gradients.
  bool is_kept(TensorId id, int block, const std::set<std::string>& layers) const {
    const TensorId memory = owner(id);
    const int made_by = maker_[index(memory)];
    if (made_by < 0 || block_of_[index(made_by)] != block) return true;
    const Op& op = ops_[index(made_by)];
    if (tensor(memory).role != Role::activation || !can_recompute(op)) return true;
    if (memory != op.outputs[0] && bytes_of(memory) * small_fraction <= bytes_of(op.outputs[0])) return true;
    const Reads& reads = reads_[index(memory)];
    const auto is_outside = [&](int reader) { return block_of_[index(reader)] != block; };
    const auto is_other = [&](const std::string& name) { return !layers.contains(name); };
    return reads.otherwise || std::any_of(reads.forward.begin(), reads.forward.end(), is_outside) ||
           std::any_of(reads.backward.begin(), reads.backward.end(), is_other);
  }

  RecomputableBlock examine(std::size_t first, std::size_t end) const {
    RecomputableBlock block;
    const int number = block_of_[first];
    block.name = names_[index(number)];
    std::set<std::string> layers;
    for (std::size_t i = first; i < end; ++i) layers.insert(ops_[i].name);
    for (std::size_t i = first; i < end; ++i) {
      for (TensorId id : ops_[i].outputs) {
        if (reads_[index(owner(id))].backward.empty() || is_kept(id, number, layers)) continue;
        block.activations.insert(id);
        if (owner(id) == id) block.inside += bytes_of(id);
      }
    }
    std::set<TensorId> read;  // kept tensors that the recomputed ops read
    for (std::size_t i = end; i-- > first;) {
      const Op& op = ops_[i];
      const auto is_recomputed = [&](TensorId id) { return block.activations.contains(id); };
      if (std::none_of(op.outputs.begin(), op.outputs.end(), is_recomputed)) continue;
      for (TensorId id : op.inputs) {
        if (is_kept(id, number, layers)) {
          read.insert(owner(id));
        } else {
          block.activations.insert(id);
        }
      }
      block.ops.insert(block.ops.begin(), op);
    }
    block.saved = block.inside;
    for (TensorId id : read) {
      const bool in_slot = tensor(id).role == Role::activation || tensor(id).role == Role::input;
      const int made_by = maker_[index(id)];
      if (made_by >= 0 && gathers_positions(ops_[index(made_by)])) continue;  // not kept, but gathered again
      if (in_slot && reads_[index(id)].backward.empty()) block.saved -= bytes_of(id);
    }
    return block;
  }

  const Program& program_;
  const std::vector<Op>& ops_;      // ops of the forward pass
  std::vector<int> maker_;          // op that computes each tensor
  std::vector<Reads> reads_;        // readers of each tensor with memory of its own
  std::vector<int> block_of_;       // number of each op's block
  std::vector<std::string> names_;  // name of each block
};

}  // namespace

std::vector<RecomputableBlock> recomputable_blocks(const Program& program) {
  const int forward = program.find(Phase::forward);
  if (forward < 0 || program.find(Phase::backward) < 0) return {};
  return BlockFinder(program, program.segment(forward)).run();
}

}  // namespace trainctl
