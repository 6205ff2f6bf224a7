// Reads and writes files of token ids.
#include "io/datasets/text/id_files.h"

#include <cstdint>

#include "core/base/error.h"
#include "core/base/file_names.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "io/checkpoint/atomic_file.h"
#include "io/datasets/arrays/npy.h"

namespace trainctl {
namespace {

constexpr std::int64_t largest_ids_text = std::int64_t{1} << 36;  // in bytes

}  // namespace

std::vector<TokenId> read_ids(const std::string& path) {
  std::vector<TokenId> ids;
  const auto wrong = [&path](const std::string& what) {
    return Error(ErrorKind::data, SourceLocation{path}, what, "give an .npy file of integers, or numbers in a text");
  };
  if (has_ending(path, {".npy"})) {
    const Array array = read_npy(path);
    if (!is_integer(array.type)) throw wrong("the array has no integers");
    const std::int64_t count = array.shape.count();
    std::vector<std::int64_t> values(static_cast<std::size_t>(count));
    convert(array, 0, count, values.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] < 0 || values[i] > INT32_MAX) throw wrong(format("value {} is not an id", i + 1));
      ids.push_back(static_cast<TokenId>(values[i]));
    }
    return ids;
  }
  const std::string text = read_file(path, largest_ids_text, {ErrorKind::data, "give the path of a file of ids"});
  std::int64_t id = -1;  // -1: between numbers
  for (std::size_t at = 0; at <= text.size(); ++at) {
    const char c = at < text.size() ? text[at] : ' ';
    if (c >= '0' && c <= '9') {
      id = (id < 0 ? 0 : id * 10) + (c - '0');
      if (id > INT32_MAX) throw wrong(format("the number at byte {} is too large for an id", at));
    } else if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
      throw wrong(format("byte {} is part of no number", at));
    } else if (id >= 0) {
      ids.push_back(static_cast<TokenId>(id));
      id = -1;
    }
  }
  return ids;
}

void write_ids(const std::string& path, const std::vector<TokenId>& ids) {
  const std::string header = npy_header("<i4", {static_cast<std::int64_t>(ids.size())});
  const auto bytes = static_cast<std::int64_t>(ids.size() * sizeof(TokenId));
  write_file(path, static_cast<std::int64_t>(header.size()) + bytes, [&](OutputFile& file) {
    file.write(header.data(), static_cast<std::int64_t>(header.size()));
    file.write(ids.data(), bytes);
  });
}

}  // namespace trainctl
