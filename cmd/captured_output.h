// Catches what this process and its children write to standard output.
#pragma once

#include <string>

namespace trainctl {

class CapturedOutput {
 public:
  // From here on, until the end. Throws Error{resource}.
  CapturedOutput();
  ~CapturedOutput();
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;

  // What has come.
  std::string text() const;

 private:
  int file_ = -1;
  int before_ = -1;
};

}  // namespace trainctl
