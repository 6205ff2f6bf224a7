// Creates tensors of gradients and sums in the slots of the gradients' region.
#pragma once

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "core/program/program.h"

namespace trainctl {

// Adds tensors in slots to a program, each once. The program must outlive the object.
class SlotTensors {
 public:
  explicit SlotTensors(Program& program) : program_(program) {}

  // Returns the tensor at the same offset in `slot` as `tensor`, a gradient or a sum, in slot 0.
  TensorId in_slot(TensorId tensor, int slot);
  // Returns consecutive tensors as one tensor in a slot; its name begins with `name`.
  TensorId whole(const std::vector<TensorId>& tensors, int slot, std::string_view name);
  // Adds a tensor of `count` elements. Its memory in the slot begins `offset` elements after the start of `first`.
  TensorId add(std::string name, std::int64_t count, TensorId first, int slot, std::int64_t offset);

 private:
  Program& program_;
  std::map<std::pair<TensorId, int>, TensorId> in_slot_;
  std::map<std::tuple<TensorId, std::size_t, int>, TensorId> whole_;  // key: first tensor, number of tensors, slot
};

}  // namespace trainctl
