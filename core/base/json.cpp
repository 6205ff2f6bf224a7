// Writes JSON values as text.
#include "core/base/json.h"

#include "core/base/json_fwd.h"

namespace trainctl {

std::string json_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace trainctl
