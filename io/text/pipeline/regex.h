// Regular expressions of tokenizer.json, compiled by PCRE2 with Unicode properties.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace trainctl {

class Regex {
 public:
  // Throws Error{data} that says where the expression is wrong.
  explicit Regex(const std::string& expression);
  ~Regex();
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  // Finds the first match in `text`, which is UTF-8, from the offset `from`; false if there is none. An empty match has
  // begin == end. Threads may share the object. Throws Error{data} if the search takes too many steps.
  bool find(std::string_view text, std::size_t from, std::size_t& begin, std::size_t& end) const;

 private:
  struct Code;
  std::unique_ptr<Code> code_;
  std::string expression_;
};

}  // namespace trainctl
