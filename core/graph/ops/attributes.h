// Writes an op's attributes as text: "strides=2x2 activation=relu", only what differs from the default.
#pragma once

#include <string>
#include <string_view>

#include "core/base/format.h"

namespace trainctl {

class AttributeText {
 public:
  // "name=value"; floats with as many digits as tell them apart.
  template <class T>
  AttributeText& value(std::string_view name, const T& value) {
    return word(format("{}={}", name, value));
  }
  // "name" where it is set.
  AttributeText& flag(std::string_view name, bool set) { return set ? word(name) : *this; }
  AttributeText& word(std::string_view word) {
    if (!text_.empty() && !word.empty()) text_ += ' ';
    text_ += word;
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace trainctl
