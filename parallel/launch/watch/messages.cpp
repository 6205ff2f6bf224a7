// Writes and reads the messages as JSON.
#include "parallel/launch/watch/messages.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/flight_state.h"
#include "core/base/format.h"
#include "core/base/json.h"

namespace trainctl {
namespace {

constexpr std::array<std::string_view, 5> request_names = {"alive", "pause", "places", "files", "end"};
constexpr std::array<std::string_view, 5> news_names = {"hello", "ranks", "places", "file", "files"};
constexpr std::size_t longest_text = 4096, most_entries = 4096;

template <class Kind, std::size_t count>
std::optional<Kind> kind_named(const std::array<std::string_view, count>& names, const Json& json) {
  const auto given = json.find("kind");
  if (given == json.end() || !given->is_string()) return {};
  const auto found = std::find(names.begin(), names.end(), given->get<std::string>());
  return found == names.end() ? std::nullopt : std::optional(static_cast<Kind>(found - names.begin()));
}

// Reads values of a JSON object. A value that is missing, or has another type or range, makes the whole object invalid.
class ObjectReader {
 public:
  explicit ObjectReader(const Json& json) : json_(json), valid_(json.is_object()) {}

  std::int64_t integer(const char* key, std::int64_t least, std::int64_t most) {
    const Json* value = find(key);
    const bool good = value != nullptr && value->is_number_integer() &&
                      !(value->is_number_unsigned() && value->get<std::uint64_t>() > INT64_MAX);
    const std::int64_t number = good ? value->get<std::int64_t>() : least;
    valid_ = valid_ && good && number >= least && number <= most;
    return std::clamp(number, least, most);
  }
  bool boolean(const char* key) {
    const Json* value = find(key);
    valid_ = valid_ && value != nullptr && value->is_boolean();
    return valid_ && value->get<bool>();
  }
  std::string text(const char* key, std::size_t longest = longest_text) {
    const Json* value = find(key);
    valid_ = valid_ && value != nullptr && value->is_string() && value->get_ref<const std::string&>().size() <= longest;
    return valid_ ? value->get<std::string>() : "";
  }
  const Json& list(const char* key) {
    static const Json none = Json::array();
    const Json* value = find(key);
    valid_ = valid_ && value != nullptr && value->is_array() && value->size() <= most_entries;
    return valid_ ? *value : none;
  }
  void refuse() { valid_ = false; }
  bool valid() const { return valid_; }

 private:
  const Json* find(const char* key) const {
    if (!json_.is_object()) return nullptr;
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }

  const Json& json_;
  bool valid_;
};

constexpr std::int64_t most_ranks = 1 << 24, most_processes = INT32_MAX;

Json to_json(const RankView& view) {
  constexpr double milliseconds = 1e3, microseconds = 1e6;
  return {{"rank", view.rank},
          {"process", view.process},
          {"training", static_cast<int>(view.training)},
          {"waits", view.waits},
          {"in_message", view.in_message},
          {"activity", static_cast<int>(view.activity)},
          {"text", view.text},
          {"step", view.step},
          {"ms", std::llround(std::min(view.seconds * milliseconds, 1e15))},
          {"progress", static_cast<std::int64_t>(view.progress & INT64_MAX)},
          {"step_us", std::llround(std::min(view.step_seconds * microseconds, 1e15))}};
}

std::optional<RankView> read_view(const Json& json) {
  ObjectReader reader(json);
  constexpr int last = static_cast<int>(Activity::ended);
  RankView view;
  view.rank = static_cast<int>(reader.integer("rank", 0, most_ranks));
  view.process = static_cast<int>(reader.integer("process", 0, most_processes));
  view.training = static_cast<Activity>(reader.integer("training", 0, last));
  view.waits = reader.boolean("waits");
  view.in_message = reader.boolean("in_message");
  view.activity = static_cast<Activity>(reader.integer("activity", 0, last));
  view.text = reader.text("text");
  view.step = reader.integer("step", -1, INT64_MAX);
  view.seconds = static_cast<double>(reader.integer("ms", 0, INT64_MAX)) / 1e3;
  view.progress = static_cast<std::uint64_t>(reader.integer("progress", 0, INT64_MAX));
  view.step_seconds = static_cast<double>(reader.integer("step_us", 0, INT64_MAX)) / 1e6;
  return reader.valid() ? std::optional(view) : std::nullopt;
}

Json to_json(const RankPlace& rank) {
  Json threads = Json::array();
  for (const ThreadPlace& thread : rank.place.threads) {
    threads.push_back({{"name", thread.name},
                       {"state", std::string(1, thread.state)},
                       {"call", thread.system_call},
                       {"kernel", thread.kernel_function},
                       {"functions", thread.functions}});
  }
  return {{"rank", rank.rank},
          {"exists", rank.place.exists},
          {"stopped", rank.place.stopped},
          {"in_debugger", rank.place.in_debugger},
          {"threads", threads}};
}

std::optional<RankPlace> read_place(const Json& json) {
  ObjectReader reader(json);
  RankPlace rank{.rank = static_cast<int>(reader.integer("rank", 0, most_ranks))};
  rank.place.exists = reader.boolean("exists");
  rank.place.stopped = reader.boolean("stopped");
  rank.place.in_debugger = reader.boolean("in_debugger");
  for (const Json& each : reader.list("threads")) {
    ObjectReader part(each);
    ThreadPlace thread{.name = part.text("name")};
    const std::string state = part.text("state", 1);
    thread.state = state.empty() ? '?' : state[0];
    thread.system_call = part.text("call");
    thread.kernel_function = part.text("kernel");
    for (const Json& function : part.list("functions")) {
      if (!function.is_string() || function.get_ref<const std::string&>().size() > longest_text) return {};
      thread.functions.push_back(function.get<std::string>());
    }
    if (!part.valid()) return {};
    rank.place.threads.push_back(std::move(thread));
  }
  return reader.valid() ? std::optional(rank) : std::nullopt;
}

std::string to_hex(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += {digits[byte >> 4], digits[byte & 15]};
  }
  return text;
}

std::optional<std::string> read_hex(std::string_view text) {
  const auto value = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  if (text.size() % 2 != 0) return {};
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = value(text[i]), low = value(text[i + 1]);
    if (high < 0 || low < 0) return {};
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
}

template <class T, class Read>
bool read_entries(const Json& list, std::vector<T>& entries, const Read& read) {
  for (const Json& each : list) {
    std::optional<T> entry = read(each);
    if (!entry) return false;
    entries.push_back(std::move(*entry));
  }
  return true;
}

}  // namespace

std::string to_line(const WatchRequest& request) {
  return json_line(Json{{"kind", request_names[static_cast<std::size_t>(request.kind)]}});
}

std::string to_line(const WatchNews& news, std::string_view mark) {
  Json json = {{"kind", news_names[static_cast<std::size_t>(news.kind)]}};
  switch (news.kind) {
    case WatchNews::Kind::hello:
      json["version"] = news.version;
      break;
    case WatchNews::Kind::ranks:
      json["ranks"] = Json::array();
      for (const RankView& view : news.ranks) json["ranks"].push_back(to_json(view));
      break;
    case WatchNews::Kind::places:
      json["places"] = Json::array();
      for (const RankPlace& place : news.places) json["places"].push_back(to_json(place));
      json["last"] = news.last;
      break;
    case WatchNews::Kind::file:
      json["name"] = news.file_name;
      json["bytes"] = to_hex(news.bytes);
      break;
    case WatchNews::Kind::files:
      break;
  }
  return format("{} {}", mark, json_line(json));
}

std::optional<WatchRequest> read_request(std::string_view line) {
  if (line.size() > longest_watch_line) return {};
  const Json json = try_parse_json(line);
  if (!json.is_object()) return {};
  const auto kind = kind_named<WatchRequest::Kind>(request_names, json);
  return kind ? std::optional(WatchRequest{*kind}) : std::nullopt;
}

std::optional<WatchNews> read_news(std::string_view line, std::string_view mark) {
  if (line.size() > longest_watch_line || line.size() <= mark.size() || !line.starts_with(mark) ||
      line[mark.size()] != ' ') {
    return {};
  }
  const Json json = try_parse_json(line.substr(mark.size() + 1));
  if (!json.is_object()) return {};
  const auto kind = kind_named<WatchNews::Kind>(news_names, json);
  if (!kind) return {};
  WatchNews news{.kind = *kind};
  ObjectReader reader(json);
  switch (news.kind) {
    case WatchNews::Kind::hello:
      news.version = static_cast<int>(reader.integer("version", 0, INT32_MAX));
      break;
    case WatchNews::Kind::ranks:
      if (!read_entries(reader.list("ranks"), news.ranks, read_view)) reader.refuse();
      break;
    case WatchNews::Kind::places:
      if (!read_entries(reader.list("places"), news.places, read_place)) reader.refuse();
      news.last = reader.boolean("last");
      break;
    case WatchNews::Kind::file: {
      news.file_name = reader.text("name");
      const auto bytes = read_hex(reader.text("bytes", 2 * piece_of_file));
      if (!is_plain_name(news.file_name) || !bytes) reader.refuse();
      news.bytes = bytes.value_or("");
      break;
    }
    case WatchNews::Kind::files:
      break;
  }
  return reader.valid() ? std::optional(std::move(news)) : std::nullopt;
}

std::vector<std::string> LineReader::add(std::string_view bytes) {
  std::vector<std::string> lines;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    too_long_ = too_long_ || line_.size() + part.size() > longest_watch_line;
    if (too_long_) {
      line_.clear();
    } else {
      line_.append(part);
    }
    if (end == std::string_view::npos) break;
    if (!too_long_) lines.push_back(line_);
    line_.clear();
    too_long_ = false;
    bytes.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace trainctl
