// Reports the failure of a child process that runs another command of trainctl.
#pragma once

#include <string>

namespace trainctl {

struct ChildEnd;

// Throws an Error with the message of the child and the kind of its exit code, which is not 0. `what`: what the child
// was, such as "the run on 2 ranks".
[[noreturn]] void throw_failure(const std::string& what, const ChildEnd& end);

}  // namespace trainctl
