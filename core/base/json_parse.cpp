// Parsing with an eye on the depth: values below it are dropped while they come.
#include "core/base/json_parse.h"

#include "core/base/format.h"

namespace trainctl {

Json parse_json(std::string_view text, const SourceLocation& location) {
  bool too_deep = false;
  const auto look = [&too_deep](int depth, Json::parse_event_t, const Json&) {
    too_deep |= depth > most_json_levels;
    return !too_deep;
  };
  Json json = Json::parse(text, look);
  if (too_deep) {
    throw Error(ErrorKind::data, location, format("holds JSON of more than {} levels", most_json_levels),
                "no program writes such a file: get it again");
  }
  return json;
}

}  // namespace trainctl
