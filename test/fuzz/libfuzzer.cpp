// The entry points of libFuzzer: TRAINCTL_FUZZ_TARGET names the target. A fault ends the process, and libFuzzer writes
// the input to a file.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "test/fuzz/targets.h"

namespace {

const trainctl::fuzz::Target& chosen_target() {
  const char* name = std::getenv("TRAINCTL_FUZZ_TARGET");
  for (const trainctl::fuzz::Target& target : trainctl::fuzz::targets()) {
    if (name != nullptr && target.name == std::string(name)) return target;
  }
  std::fprintf(stderr, "TRAINCTL_FUZZ_TARGET must be one of:\n");
  for (const trainctl::fuzz::Target& target : trainctl::fuzz::targets()) std::fprintf(stderr, "%s\n", target.name);
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const trainctl::fuzz::Target& target = chosen_target();
  const std::string fault = run(target, {reinterpret_cast<const char*>(data), size}).fault;
  if (fault.empty()) return 0;
  std::fprintf(stderr, "fault of %s: %s\n", target.name, fault.c_str());
  std::abort();
}
