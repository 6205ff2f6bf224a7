// trainctl tokenizer decode: writes the text of ids.
#include <filesystem>

#include "cmd/tokenizer/tokenizer.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/output.h"
#include "io/checkpoint/atomic_file.h"
#include "io/datasets/arrays/npy.h"
#include "io/text/load.h"
#include "parallel/launch/ranks/report.h"

namespace trainctl {
namespace {

constexpr std::int64_t largest_ids_text = std::int64_t{1} << 36;  // in bytes

// The ids of an .npy file, or of a text of numbers between white space.
std::vector<TokenId> read_ids(const std::string& path) {
  std::vector<TokenId> ids;
  const auto wrong = [&path](const std::string& what) {
    return Error(ErrorKind::data, SourceLocation{path}, what, "give an .npy file of integers, or numbers in a text");
  };
  if (std::filesystem::path(path).extension() == ".npy") {
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

}  // namespace

int tokenizer_decode(const TokenizerOptions& options) {
  if (options.files.size() != 1) throw Error(ErrorKind::config, "tokenizer decode requires one file of ids");
  if (!options.out.empty()) require_absent(options.out, options.force);
  const auto tokenizer = load_tokenizer(options.tokenizer, options.encoding);
  const std::vector<TokenId> ids = read_ids(options.files.front());
  const std::string text = tokenizer->decode(ids);
  if (!options.out.empty()) write_file(options.out, text);
  if (options.common.json) {
    answer(json_line(Json{{"ok", true}, {"tokens", ids.size()}, {"bytes", text.size()}, {"text", text}}));
  } else if (options.out.empty()) {
    write_output_bytes(text);
  } else if (!options.common.quiet) {
    answer(format("{}: {} of {} tokens\n", options.out, byte_text(static_cast<std::int64_t>(text.size())), ids.size()));
  }
  return 0;
}

}  // namespace trainctl
