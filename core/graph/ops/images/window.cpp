// Describes windows as text.
#include "core/graph/ops/images/window.h"

#include "core/graph/ops/attributes.h"

namespace trainctl {

std::string to_string(const Window& window) {
  const Window none;
  AttributeText text;
  text.word(format("{}x{}", window.size[0], window.size[1]));
  if (window.strides != none.strides) text.word(format("strides={}x{}", window.strides[0], window.strides[1]));
  if (window.dilation != none.dilation) text.word(format("dilation={}x{}", window.dilation[0], window.dilation[1]));
  if (window.padding_before != none.padding_before || window.padding_after != none.padding_after) {
    text.word(format("padding={},{},{},{}", window.padding_before[0], window.padding_before[1], window.padding_after[0],
                     window.padding_after[1]));
  }
  return text.text();
}

}  // namespace trainctl
