// Checks the names of an expression's inputs.
#include "core/layers/expression/input_names.h"

#include <algorithm>

#include "core/base/format.h"

namespace trainctl {

void check_input_names(std::vector<std::string> names, std::size_t given, const Node& node, Reader& reader) {
  const Node* inputs = node.find("inputs");
  const SourceLocation& location = inputs != nullptr ? inputs->location : node.location;
  if (names.size() != given) {
    reader.error(location, format("`inputs` must name the {} of the expression, in the order of `from`",
                                  given == 1 ? std::string("input") : format("{} inputs", given)));
  }
  std::sort(names.begin(), names.end());
  if (std::adjacent_find(names.begin(), names.end()) != names.end()) {
    reader.error(location, "two inputs have the same name");
  }
}

}  // namespace trainctl
