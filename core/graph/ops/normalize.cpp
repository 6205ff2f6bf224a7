// Rules of the input's normalisation.
#include "core/graph/ops/normalize.h"

#include "core/graph/ops/attributes.h"

namespace trainctl {

std::string Normalize::attributes() const {
  AttributeText text;
  for (const float value : scale) text.value("scale", value);
  for (const float value : offset) text.value("offset", value);
  return text.text();
}

}  // namespace trainctl
