// Extents as JSON, the form in which manifests store them and ranks exchange them.
#pragma once

#include <optional>

#include "core/base/json_fwd.h"
#include "core/tensor/extent.h"

namespace trainctl {

// null for the whole tensor, {"offsets": [...], "sizes": [...]} for a box, {"offset": ..., "count": ...} for a range;
// a box and "range": {"offset": ..., "count": ...} for a range of the box.
Json to_json(const TensorExtent& extent);

// Reads what to_json() wrote; empty where the JSON holds no extent that lies within a tensor of this shape.
std::optional<TensorExtent> extent_from_json(const Json& json, const Shape& tensor);

}  // namespace trainctl
