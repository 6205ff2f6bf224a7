// Tensors of gradients and sums in the slots of the gradients' region.
#pragma once

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "core/program/program.h"

namespace trainctl {

// Makes a program's tensors in slots, each once. The program must outlive it.
class SlotTensors {
 public:
  explicit SlotTensors(Program& program) : program_(program) {}

  // The tensor that lies in a slot as this one, a gradient or a sum, lies in slot 0.
  TensorId in_slot(TensorId tensor, int slot);
  // Tensors that lie one behind the other, as one tensor in a slot; its name begins with `name`.
  TensorId whole(const std::vector<TensorId>& tensors, int slot, std::string_view name);
  // A new tensor of `count` elements, whose memory in a slot begins `offset` elements behind the start of `first`.
  TensorId add(std::string name, std::int64_t count, TensorId first, int slot, std::int64_t offset);

 private:
  Program& program_;
  std::map<std::pair<TensorId, int>, TensorId> in_slot_;
  std::map<std::tuple<TensorId, std::size_t, int>, TensorId> whole_;  // by first tensor, number of tensors, and slot
};

}  // namespace trainctl
