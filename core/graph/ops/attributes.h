// Writes an op's attributes as text: "strides=2x2 activation=relu", only what differs from the default.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "core/base/format.h"
#include "core/spec/type_info.h"

namespace trainctl {

class AttributeText {
 public:
  // "name=value"; floats with as many digits as tell them apart.
  template <class T>
  AttributeText& value(std::string_view name, const T& value) {
    return word(format("{}={}", name, value));
  }
  // "name" where the flag is set.
  AttributeText& flag(std::string_view name, bool set) { return set ? word(name) : *this; }
  AttributeText& word(std::string_view word) {
    if (!text_.empty() && !word.empty()) text_ += ' ';
    text_ += word;
    return *this;
  }
  // The name of a loss's or a metric's rule, and those of its options that differ from the defaults.
  template <class Rule>
  AttributeText& rule(const Rule& rule) {
    word(Rule::name);
    const Rule defaults;
    Rule::options([&](const char* name, auto member, const char*, const Range&) {
      if (rule.*member == defaults.*member) return;
      if constexpr (std::is_enum_v<std::remove_cvref_t<decltype(rule.*member)>>) {
        value(name, name_of(rule.*member));
      } else {
        value(name, rule.*member);
      }
    });
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace trainctl
