// trainctl tokenizer encode: writes the ids of texts.
#include <algorithm>
#include <chrono>
#include <filesystem>

#include "cmd/tokenizer/tokenizer.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/table.h"
#include "io/datasets/text/id_files.h"
#include "io/text/load.h"
#include "parallel/launch/ranks/report.h"

namespace trainctl {
namespace {

// The longest text file that is read: ids need four bytes for each token besides.
constexpr std::int64_t largest_text = std::int64_t{1} << 40;

// A line of ids.
std::string ids_text(const std::vector<TokenId>& ids, std::size_t from) {
  std::string text;
  for (std::size_t i = from; i < ids.size(); ++i) text += (i > from ? " " : "") + std::to_string(ids[i]);
  return text + "\n";
}

}  // namespace

int tokenizer_encode(const TokenizerOptions& options) {
  if (options.files.empty()) throw Error(ErrorKind::config, "tokenizer encode requires the file of a text");
  if (!options.out.empty() && std::filesystem::path(options.out).extension() != ".npy") {
    throw Error(ErrorKind::config, "--out " + options.out + ": ids are written as an .npy file",
                "name it like ids.npy");
  }
  require_not_input("--out", options.out, options.files);
  require_not_input("--out", options.out, {options.tokenizer});
  if (!options.out.empty()) require_absent(options.out, options.force);
  const auto tokenizer = load_tokenizer(options.tokenizer, options.encoding);
  const auto encoder = tokenizer->make_encoder(options.plain ? SpecialText::plain : SpecialText::recognized);
  std::vector<TokenId> ids;
  std::string lines;
  std::int64_t bytes = 0;
  double seconds = 0;
  for (const std::string& file : options.files) {
    const std::string text = read_file(file, largest_text, {ErrorKind::data, "give the path of a text file"});
    const std::size_t before = ids.size();
    const auto start = std::chrono::steady_clock::now();
    if (options.frame) ids.insert(ids.end(), tokenizer->ids_before().begin(), tokenizer->ids_before().end());
    encoder->encode(text, ids, file);
    if (options.frame) ids.insert(ids.end(), tokenizer->ids_after().begin(), tokenizer->ids_after().end());
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    bytes += static_cast<std::int64_t>(text.size());
    if (options.out.empty() && !options.common.json) lines += ids_text(ids, before);
  }
  if (!options.out.empty()) write_ids(options.out, ids);
  const double rate = static_cast<double>(ids.size()) / std::max(seconds, 1e-9);
  if (options.common.json) {
    answer(json_line(Json{{"ok", true},
                          {"texts", options.files.size()},
                          {"bytes", bytes},
                          {"tokens", ids.size()},
                          {"seconds", seconds},
                          {"tokens_per_second", rate}}));
  } else if (options.out.empty()) {
    answer(lines);
  } else if (!options.common.quiet) {
    answer(format("{}: {} of {}, {:.1f} million tokens/s\n", options.out, counted(ids.size(), "token"),
                  byte_text(bytes), rate / 1e6));
  }
  return 0;
}

}  // namespace trainctl
