// Writes the attributes of an op that are not defaults as text, such as "strides=2x2 activation=relu".
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "core/base/format.h"
#include "core/spec/type_info.h"

namespace trainctl {

class AttributeText {
 public:
  // Appends "name=value"; floats have enough digits to be exact.
  template <class T>
  AttributeText& value(std::string_view name, const T& value) {
    return word(format("{}={}", name, value));
  }
  // Appends "name" if the flag is set.
  AttributeText& flag(std::string_view name, bool set) { return set ? word(name) : *this; }
  AttributeText& word(std::string_view word) {
    if (!text_.empty() && !word.empty()) text_ += ' ';
    text_ += word;
    return *this;
  }
  // Appends the name of the rule of a loss or a metric, and its options that differ from the defaults.
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
