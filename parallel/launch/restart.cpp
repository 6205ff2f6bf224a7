// Writes and reads a restart as JSON.
#include "parallel/launch/restart.h"

#include "core/base/json.h"

namespace trainctl {
namespace {

template <class Number>
Json known(const std::optional<Number>& value) {
  return value ? Json(*value) : Json();
}

template <class Number>
std::optional<Number> number_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_integer() ? std::optional(found->get<Number>()) : std::nullopt;
}

// The text of a key; "" if there is none.
std::string text_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

std::string to_text(const Restart& restart) {
  const RestartEvent& event = restart.event;
  const Json json = {{"attempt", event.attempt},
                     {"cause", event.cause},
                     {"rank", known(event.rank)},
                     {"host", event.host},
                     {"signal", known(event.signal)},
                     {"step", known(event.step)},
                     {"run_directory", restart.run_directory}};
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::optional<Restart> read_restart(const std::string& text) {
  const Json json = try_parse_json(text);
  if (!json.is_object()) return {};
  const std::optional<int> attempt = number_in<int>(json, "attempt");
  if (!attempt) return {};
  return Restart{.event = {.attempt = *attempt,
                           .cause = text_in(json, "cause"),
                           .rank = number_in<int>(json, "rank"),
                           .host = text_in(json, "host"),
                           .signal = number_in<int>(json, "signal"),
                           .step = number_in<std::int64_t>(json, "step")},
                 .run_directory = text_in(json, "run_directory")};
}

}  // namespace trainctl
