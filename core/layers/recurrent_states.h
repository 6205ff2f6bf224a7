// The states of recurrent layers, which other layers give and read.
#pragma once

#include <optional>
#include <vector>

#include "core/layers/layer.h"

namespace trainctl {

// Names of the further outputs of a recurrent layer with return_state.
inline constexpr const char *hidden_state = "hidden_state", *cell_state = "cell_state";

// Returns the states before the first step, which the features after inputs[0] are. If there is only one such feature,
// and its layer has return_state, they are its states. The layer needs `needed` states (two: hidden and cell state) of
// samples of the shape `state`. Reports an error and returns no value if others are given.
std::optional<std::vector<TensorId>> initial_states(Layer& layer, const std::vector<Feature>& inputs,
                                                    std::size_t needed, const Shape& state);

}  // namespace trainctl
