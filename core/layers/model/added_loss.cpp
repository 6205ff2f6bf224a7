// The keys of an added loss.
#include "core/layers/model/added_loss.h"

#include <algorithm>
#include <set>

#include "core/base/format.h"
#include "core/expression/syntax.h"
#include "core/layers/expression/layer_expression.h"
#include "core/spec/suggestion.h"

namespace trainctl {
namespace {

constexpr const char* targets_name = "y_true";

// Reports a mistake in the syntax, and inputs that the expression does not use.
void check_added_loss(const AddedLoss& loss, const Node& node, Reader& reader) {
  check_input_names(loss.inputs.items, loss.from.items.size(), node, reader);
  try {
    const std::set<std::string> names = names_in(parse_expression(loss.expression.value));
    std::vector<std::string> unknown;
    for (const std::string& name : names) {
      const auto& inputs = loss.inputs.items;
      if (name != targets_name && std::find(inputs.begin(), inputs.end(), name) == inputs.end())
        unknown.push_back(name);
    }
    for (const std::string& input : loss.inputs.items) {
      if (input == targets_name) {
        reader.error(loss.expression.location, "'y_true' are the targets: give the input another name");
      } else if (!names.contains(input)) {
        const std::string near = nearest(input, unknown);
        reader.error(loss.expression.location, format("the expression does not use '{}'{}", input,
                                                      near.empty() ? "" : format("; did you mean it by '{}'?", near)));
      }
    }
    if (!loss.targets.name.empty() && !names.contains(targets_name)) {
      reader.error(loss.targets.location, "the expression does not use y_true, the targets of this output");
    }
  } catch (const ExpressionError& error) {
    reader.error(loss.expression.location, error.in_words());
  }
}

}  // namespace

Keys<AddedLoss> AddedLoss::keys() {
  return Keys<AddedLoss>("add_loss", "A loss of values inside the network, like Keras' add_loss().")
      .required("from", &AddedLoss::from, "The layers or inputs of the model that the expression reads.")
      .key("inputs", &AddedLoss::inputs, "The names of their values in the expression, in the order of `from`.")
      .key("targets", &AddedLoss::targets,
           "With several outputs: the output whose targets the expression uses as y_true. Class numbers are one-hot.")
      .required("expression", &AddedLoss::expression,
                "Values for each sample, whose mean is the loss: for example -0.5 * sum(1 + v - square(m) - exp(v), "
                "axis=-1). mean() without an axis is the mean of all values of the batch.")
      .key("weight", &AddedLoss::weight, "Weight of the loss in the sum of all losses.")
      .key(
          "whole_batch", &AddedLoss::whole_batch,
          "Whether the samples of a batch depend on each other, as in contrastive losses. Dimension 0 of the values is "
          "then an ordinary dimension with the samples of all ranks, as in Keras on one device: "
          "matmul(x, transpose(x)) are the products of all pairs of samples.")
      .check(check_added_loss);
}

bool AddedLoss::reads_targets() const {
  try {
    return names_in(parse_expression(expression.value)).contains(targets_name);
  } catch (const ExpressionError&) {
    return false;  // reported where the config is read
  }
}

}  // namespace trainctl
