// Writes JSON values as text and reads them: the only file that compiles the library's parser and writer.
#include "core/base/json.h"

namespace trainctl {

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string json_line(const Json& json) { return json_text(json) + "\n"; }

Json parse_json(std::string_view text) { return Json::parse(text); }

Json try_parse_json(std::string_view text) { return Json::parse(text, nullptr, false); }

}  // namespace trainctl
