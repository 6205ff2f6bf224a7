// Parses JSON and drops values that are nested too deep while parsing, so that they use no memory.
#include "core/base/json_parse.h"

#include "core/base/format.h"

namespace trainctl {

Json parse_json(std::string_view text, const SourceLocation& location) {
  bool too_deep = false;
  const auto check_depth = [&too_deep](int depth, Json::parse_event_t, const Json&) {
    too_deep |= depth > max_json_levels;
    return !too_deep;
  };
  Json json = Json::parse(text, check_depth);
  if (too_deep) {
    throw Error(ErrorKind::data, location, format("holds JSON of more than {} levels", max_json_levels),
                "the file is probably damaged: download it or copy it again");
  }
  return json;
}

}  // namespace trainctl
