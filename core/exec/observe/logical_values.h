// The values of a tensor in logical layout, whatever layout it lies in on the device.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/backend/backend.h"

namespace trainctl {

// The tensor as float32 in logical layout, from the bytes that Engine::read_tensor() gave. Nothing where its elements
// are whole numbers, or the backend has no way from its layout to the logical one.
std::optional<std::vector<float>> logical_values(Backend& backend, const TensorType& type, const Layout& layout,
                                                 const std::vector<std::byte>& bytes);

}  // namespace trainctl
