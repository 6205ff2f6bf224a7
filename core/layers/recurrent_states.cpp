// Finds the states that a recurrent layer begins with.
#include "core/layers/recurrent_states.h"

#include "core/base/format.h"

namespace trainctl {

std::optional<std::vector<TensorId>> initial_states(Layer& layer, const std::vector<Feature>& inputs,
                                                    std::size_t needed, const Shape& state) {
  if (inputs.size() < 2) {
    layer.error("initial_state is not supported in a layer that is a part of another one", inputs[0]);
    return std::nullopt;
  }
  std::vector<Feature> given(inputs.begin() + 1, inputs.end());
  if (given.size() == 1) {
    const Feature layer_output = given[0], hidden = layer.further_output(layer_output, hidden_state),
                  cell_of_layer = layer.further_output(layer_output, cell_state);
    if (hidden.known()) given = {hidden};
    if (cell_of_layer.known()) given.push_back(cell_of_layer);
  }
  if (given.size() != needed) {
    layer.error(format("it has {}, but initial_state gives {}: name a layer of the same kind with return_state: true, "
                       "or the layers whose outputs are the states",
                       needed == 2 ? "two states, hidden and cell" : "one state", given.size()),
                given[0]);
    return std::nullopt;
  }
  std::vector<TensorId> states;
  for (const Feature& of : given) {
    if (layer.shape(of) != state || layer.type(of).shape[0] != layer.type(inputs[0]).shape[0]) {
      layer.error(format("an initial state of {} does not fit, since the states are {}", to_string(layer.shape(of)),
                         to_string(state)),
                  of);
      return std::nullopt;
    }
    states.push_back(of.tensor);
  }
  return states;
}

}  // namespace trainctl
