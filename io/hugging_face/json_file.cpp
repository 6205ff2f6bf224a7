// Reads JSON files with limits for their size and nesting.
#include "io/hugging_face/json_file.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json.h"

namespace trainctl {
namespace {

constexpr int max_json_depth = 100;
constexpr FileRole role{ErrorKind::data, "copy the whole folder that save_pretrained wrote"};

}  // namespace

Json read_json_object(const std::string& path, std::int64_t limit) {
  const std::string text = read_file(path, limit, role);
  bool too_deep = false;
  const auto check_depth = [&too_deep](int depth, Json::parse_event_t, Json&) {
    too_deep |= depth > max_json_depth;
    return depth <= max_json_depth;
  };
  std::string problem = "is not a JSON object";
  try {
    Json json = Json::parse(text, check_depth);
    if (!too_deep && json.is_object()) return json;
    if (too_deep) problem = format("has more than {} levels", max_json_depth);
  } catch (const Json::parse_error& error) {
    problem = format("is not JSON: there is an error at byte {}", error.byte);
  } catch (const Json::exception&) {
    problem = "holds a number that is too large";
  }
  throw Error(ErrorKind::data, SourceLocation{path}, problem, role.if_missing);
}

}  // namespace trainctl
