// Writes and reads the line of a generation.
#include "core/base/generation.h"

#include <algorithm>
#include <sstream>

#include "core/base/format.h"

namespace trainctl {

std::string line_of_launch(const std::string& launch) { return format("launch {} generation ", launch); }

std::string to_line(const Generation& generation) {
  if (generation.launch.empty()) return "";
  return format("{}{}{}\n", line_of_launch(generation.launch), generation.number,
                generation.restarts ? " restarts" : "");
}

Generation generation_in(const std::string& lock_text) {
  std::istringstream words(lock_text.substr(std::min(lock_text.size(), lock_text.find('\n'))));
  Generation generation;
  std::string launch, number, restarts;
  if (!(words >> launch >> generation.launch >> number >> generation.number) || launch != "launch") return {};
  generation.restarts = words >> restarts && restarts == "restarts";
  return generation;
}

}  // namespace trainctl
