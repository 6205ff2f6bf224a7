// Describes windows as text.
#include "core/graph/ops/images/window.h"

#include "core/graph/ops/attributes.h"

namespace trainctl {
namespace {

template <std::size_t axes>
std::string joined(const std::array<std::int64_t, axes>& sizes, const char* separator) {
  std::string text;
  for (std::int64_t size : sizes) text += (text.empty() ? "" : separator) + std::to_string(size);
  return text;
}

}  // namespace

template <std::size_t axes>
std::string to_string(const WindowOf<axes>& window) {
  const WindowOf<axes> none;
  AttributeText text;
  text.word(joined(window.size, "x"));
  if (window.strides != none.strides) text.word("strides=" + joined(window.strides, "x"));
  if (window.dilation != none.dilation) text.word("dilation=" + joined(window.dilation, "x"));
  if (window.padding_before != none.padding_before || window.padding_after != none.padding_after) {
    text.word("padding=" + joined(window.padding_before, ",") + "," + joined(window.padding_after, ","));
  }
  return text.text();
}

template std::string to_string(const Window& window);
template std::string to_string(const Window3d& window);

}  // namespace trainctl
