// Creates tensors of gradients and sums in slots after slot 0; most are copies of the tensors in slot 0.
#include "parallel/strategies/reproducible/slot_tensors.h"

#include "core/base/format.h"
#include "parallel/strategies/buckets.h"

namespace trainctl {

TensorId SlotTensors::in_slot(TensorId tensor, int slot) {
  if (slot == 0) return tensor;
  const auto [entry, added] = in_slot_.try_emplace({tensor, slot}, no_tensor);
  if (!added) return entry->second;
  Tensor copy = program_.tensor(tensor);
  copy.name += format("/slot {}", slot);
  program_.tensors.push_back(std::move(copy));
  entry->second = static_cast<TensorId>(program_.tensors.size() - 1);
  program_.flat.in_slots.push_back({entry->second, tensor, slot, 0});
  return entry->second;
}

TensorId SlotTensors::whole(const std::vector<TensorId>& tensors, int slot, std::string_view name) {
  const auto [entry, added] = whole_.try_emplace({tensors.front(), tensors.size(), slot}, no_tensor);
  if (!added) return entry->second;
  std::vector<TensorId> members;
  for (const TensorId tensor : tensors) members.push_back(in_slot(tensor, slot));
  entry->second = add_bucket(program_, std::move(members), 0);
  program_.tensors.back().name = format("{}/slot {}", name, slot);
  return entry->second;
}

TensorId SlotTensors::add(std::string name, std::int64_t count, TensorId first, int slot, std::int64_t offset) {
  const TensorId added = program_.add(std::move(name), {count}, DType::float32, Role::gradient);
  program_.flat.in_slots.push_back({added, first, slot, offset});
  return added;
}

}  // namespace trainctl
