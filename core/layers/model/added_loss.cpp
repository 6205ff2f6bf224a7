// The keys of an added loss.
#include "core/layers/model/added_loss.h"

#include "core/layers/expression/input_names.h"

namespace trainctl {

Keys<AddedLoss> AddedLoss::keys() {
  return Keys<AddedLoss>("add_loss", "A loss of values inside the network, like Keras' add_loss().")
      .required("from", &AddedLoss::from, "The layers or inputs of the model that the expression reads.")
      .key("inputs", &AddedLoss::inputs, "The names of their values in the expression, in the order of `from`.")
      .required("expression", &AddedLoss::expression,
                "Values for each sample, whose mean is the loss: for example -0.5 * sum(1 + v - square(m) - exp(v), "
                "axis=-1). mean() without an axis is the mean of all values of the batch.")
      .key("weight", &AddedLoss::weight, "Weight of the loss in the sum of all losses.")
      .check([](const AddedLoss& loss, const Node& node, Reader& reader) {
        check_input_names(loss.inputs.items, loss.from.items.size(), node, reader);
      });
}

}  // namespace trainctl
