// Extents as JSON, which is how checkpoint manifests store them and ranks exchange them.
#pragma once

#include <optional>

#include "core/base/json_fwd.h"
#include "core/tensor/extent.h"

namespace trainctl {

// Returns null for the whole tensor, {"offsets": [...], "sizes": [...]} for a box, and {"offset": ..., "count": ...}
// for a range. For a range within a box, the object of the box also has "range": {"offset": ..., "count": ...}.
Json to_json(const TensorExtent& extent);

// Reads the JSON that to_json() wrote; empty if it is not an extent within a tensor of this shape.
std::optional<TensorExtent> extent_from_json(const Json& json, const Shape& tensor);

}  // namespace trainctl
