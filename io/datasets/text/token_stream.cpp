// Reads ids of a stream and checks them.
#include "io/datasets/text/token_stream.h"

#include <algorithm>
#include <array>

#include "core/base/format.h"

namespace trainctl {
namespace {

constexpr std::int64_t ids_at_once = 4096;

}  // namespace

std::int64_t DocumentEnds::end(std::int64_t document) const {
  std::int64_t end = 0;
  ends_.read(document * static_cast<std::int64_t>(sizeof end), &end, sizeof end);
  return end;
}

std::int64_t DocumentEnds::document_of(std::int64_t token) const {
  std::int64_t first = 0, last = size();
  while (first < last) {
    const std::int64_t middle = first + (last - first) / 2;
    end(middle) > token ? last = middle : first = middle + 1;
  }
  return first;
}

std::optional<std::int64_t> find_id_beyond(const TokenStream& stream, std::int64_t first, std::int64_t count,
                                           std::int64_t limit) {
  std::array<std::int64_t, ids_at_once> ids;
  for (std::int64_t done = 0; done < count; done += ids_at_once) {
    const std::int64_t now = std::min(ids_at_once, count - done);
    convert(stream.tokens, first + done, now, ids.data());
    const auto beyond =
        std::find_if(ids.begin(), ids.begin() + now, [limit](std::int64_t id) { return id < 0 || id >= limit; });
    if (beyond != ids.begin() + now) return first + done + (beyond - ids.begin());
  }
  return std::nullopt;
}

void refuse_id(const TokenStream& stream, std::int64_t position, std::int64_t limit, const char* owner,
               const char* remedy) {
  std::int64_t id = 0;
  convert(stream.tokens, position, 1, &id);
  const std::string place =
      stream.offset < 0 ? "" : format(" (at byte {})", stream.offset + position * stream.tokens.element_bytes());
  throw Error(ErrorKind::data, SourceLocation{stream.tokens.path},
              format("token {}{} has the id {}, but {} has the ids 0 to {}", position, place, id, owner, limit - 1),
              remedy);
}

void read_tokens(const TokenStream& stream, std::int64_t first, std::int64_t count, std::int64_t limit,
                 const char* owner, const char* remedy, std::int32_t* to) {
  std::array<std::int64_t, ids_at_once> ids;
  for (std::int64_t done = 0; done < count; done += ids_at_once) {
    const std::int64_t now = std::min(ids_at_once, count - done);
    convert(stream.tokens, first + done, now, ids.data());
    for (std::int64_t i = 0; i < now; ++i) {
      const std::int64_t id = ids[static_cast<std::size_t>(i)];
      if (id < 0 || id >= limit) refuse_id(stream, first + done + i, limit, owner, remedy);
      to[done + i] = static_cast<std::int32_t>(id);
    }
  }
}

}  // namespace trainctl
