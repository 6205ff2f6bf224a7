// Reads JSON files with limits for their size and nesting.
#include "io/hugging_face/json_file.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json_parse.h"

namespace trainctl {
namespace {

constexpr FileRole role{ErrorKind::data, "copy the whole folder that save_pretrained wrote"};

}  // namespace

Json read_json_object(const std::string& path, std::int64_t limit) {
  const std::string text = read_file(path, limit, role);
  Json json = parse_json(text, SourceLocation{path}, role.if_missing);
  if (json.is_object()) return json;
  throw Error(ErrorKind::data, SourceLocation{path}, "must be a JSON object, but is " + json_kind(json),
              role.if_missing);
}

}  // namespace trainctl
