// Expressions of a layer: lambda's, and those of layers that are expressions of their input.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/layers/expression/builder.h"
#include "core/layers/layer.h"

namespace trainctl {

// Returns a scope without names, whose ops are appended to the layer. `layer` must outlive it.
ExpressionScope scope_of(Layer& layer);

// Appends the ops of an expression of tensors that have samples, by their names; returns its value. The expression must
// have no mistakes.
TensorId value_of(Layer& layer, std::string_view text, const std::map<std::string, TensorId>& tensors);

// Appends the ops of an expression of `x`, the input, and of `numbers` by their names; returns its value. The
// expression must have no mistakes.
Feature expand_expression(Layer& layer, const Feature& input, std::string_view text,
                          const std::map<std::string, double>& numbers);

// Reports names that are not one for each of the `given` inputs, or not different. `node`: the section with the key
// `inputs`.
void check_input_names(std::vector<std::string> names, std::size_t given, const Node& node, Reader& reader);

}  // namespace trainctl
