// Functions that layers over volumes (depth, height, width, channels) share. Ops on images compute them in two passes:
// over the height and width of each slice, and along the depth.
#pragma once

#include <functional>

#include "core/layers/layer.h"

namespace trainctl {

// Whether the samples are volumes (depth, height, width, channels); reports an error if they are not.
bool is_volume(Layer& layer, const Feature& input);

// Appends ops on images to a layer, and returns their images; no_tensor after reporting an error.
using AppendImageOps = std::function<TensorId(TensorId images)>;

// Appends ops to volumes [N, D, H, W, C]. `on_slices` gets the images [N * D, H, W, C] of all slices and returns [N *
// D, H', W', C]; `along_depth` gets [N, D, H' * W', C], images that have a row for each slice, and returns [N, D', H' *
// W', C]. An empty function leaves out its pass. Returns the volumes [N, D', H', W', C], or no_tensor if a function
// did.
TensorId append_by_pass(Layer& layer, TensorId volumes, const AppendImageOps& on_slices,
                        const AppendImageOps& along_depth);

}  // namespace trainctl
