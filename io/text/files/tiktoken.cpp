// Reads rank files, and knows the patterns and special tokens of tiktoken's encodings.
#include "io/text/files/tiktoken.h"

#include <charconv>
#include <vector>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "io/text/files/base64.h"
#include "io/text/models/bpe.h"
#include "io/text/pipeline/pipeline.h"

namespace trainctl {
namespace {

constexpr std::size_t longest_rank_token = 1024;  // bytes; the published files have tokens of up to 128
constexpr std::string_view end_of_text = "<|endoftext|>";

struct Encoding {
  std::string_view name;
  std::size_t ranks;  // the number of ranks of the published file
  Pattern pattern;
  std::vector<SpecialToken> special;
};

std::vector<SpecialToken> harmony_tokens() {
  std::vector<SpecialToken> tokens = {{"<|startoftext|>", 199998}, {"<|endoftext|>", 199999}, {"<|return|>", 200002},
                                      {"<|constrain|>", 200003},   {"<|channel|>", 200005},   {"<|start|>", 200006},
                                      {"<|end|>", 200007},         {"<|message|>", 200008},   {"<|call|>", 200012}};
  for (TokenId id = 200000; id < 201088; ++id) {
    const bool reserved = id == 200000 || id == 200001 || id == 200004 || (id >= 200009 && id <= 200011) || id > 200012;
    if (reserved && id != 200018) tokens.push_back({format("<|reserved_{}|>", id), id});
    if (id == 200018) tokens.push_back({"<|endofprompt|>", id}), tokens.push_back({"<|reserved_200018|>", id});
  }
  return tokens;
}

// The encodings of tiktoken. For equal files the first one is recognized.
std::vector<Encoding> tiktoken_encodings() {
  const std::string end(end_of_text);
  const std::string prefix = "<|fim_prefix|>", middle = "<|fim_middle|>", suffix = "<|fim_suffix|>";
  return {
      {"r50k_base", 50256, Pattern::gpt2, {{end, 50256}}},
      {"gpt2", 50256, Pattern::gpt2, {{end, 50256}}},
      {"p50k_base", 50280, Pattern::gpt2, {{end, 50256}}},
      {"p50k_edit", 50280, Pattern::gpt2, {{end, 50256}, {prefix, 50281}, {middle, 50282}, {suffix, 50283}}},
      {"cl100k_base",
       100256,
       Pattern::cl100k,
       {{end, 100257}, {prefix, 100258}, {middle, 100259}, {suffix, 100260}, {"<|endofprompt|>", 100276}}},
      {"o200k_base", 199998, Pattern::o200k, {{end, 199999}, {"<|endofprompt|>", 200018}}},
      {"o200k_harmony", 199998, Pattern::o200k, harmony_tokens()},
  };
}

[[noreturn]] void throw_wrong_rank(const std::string& path, int line, std::string_view what) {
  throw Error(ErrorKind::data, SourceLocation{path, line, 0}, what,
              "the file is damaged or no rank file: download it or copy it again");
}

// Splits a line into its base64 and its rank; false if it does not have this form.
bool split_rank_line(std::string_view line, std::string_view& base64, TokenId& rank) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return false;
  base64 = line.substr(0, space);
  const char* end = line.data() + line.size();
  const auto [after, error] = std::from_chars(line.data() + space + 1, end, rank);
  return error == std::errc() && after == end && rank >= 0;
}

Vocabulary read_rank_lines(std::string_view text, const std::string& path) {
  Vocabulary ranks;
  std::string bytes;
  // Each line has at least five bytes, which bounds the ranks that the file can have.
  const auto limit = static_cast<std::int64_t>(text.size() / 2 + 65536);
  int number = 1;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (line.empty() || line == "\r") continue;
    std::string_view base64;
    TokenId rank = 0;
    bytes.clear();
    if (!split_rank_line(line, base64, rank) || !append_base64(base64, bytes)) {
      throw_wrong_rank(path, number, "a line must be a token in base64, a space and a rank");
    }
    if (bytes.empty() || bytes.size() > longest_rank_token) {
      throw_wrong_rank(path, number,
                       format("a token must have 1 to {} bytes, not {}", longest_rank_token, bytes.size()));
    }
    if (rank > limit || rank > largest_token) throw_wrong_rank(path, number, format("the rank {} is too large", rank));
    if (!ranks.add(bytes, rank)) throw_wrong_rank(path, number, "the token or its rank occurs twice");
  }
  for (int byte = 0; byte < 256; ++byte) {
    const char one = static_cast<char>(byte);
    if (ranks.find({&one, 1}) == no_token) {
      throw Error(ErrorKind::data, SourceLocation{path},
                  format("the rank file has no token for the byte 0x{:02x}", byte),
                  "the file is cut short: download it or copy it again");
    }
  }
  return ranks;
}

}  // namespace

bool looks_like_ranks(std::string_view text) {
  std::string_view base64;
  TokenId rank = 0;
  std::string bytes;
  return split_rank_line(text.substr(0, std::min(text.find('\n'), text.size())), base64, rank) &&
         append_base64(base64, bytes);
}

std::unique_ptr<Tokenizer> read_ranks(std::string_view text, const std::string& path, const std::string& encoding) {
  Vocabulary ranks = read_rank_lines(text, path);
  const std::vector<Encoding> encodings = tiktoken_encodings();
  const Encoding* found = nullptr;
  std::string names;
  for (const Encoding& each : encodings) {
    names += (names.empty() ? "" : ", ") + std::string(each.name);
    const bool fits = encoding.empty() ? ranks.count() == each.ranks : encoding == each.name;
    if (fits && found == nullptr) found = &each;
  }
  if (found == nullptr && !encoding.empty()) {
    throw Error(ErrorKind::config, format("no encoding of tiktoken is named '{}'", encoding), "name one of: " + names);
  }
  if (found == nullptr) {
    throw Error(
        ErrorKind::data, SourceLocation{path},
        format("the file has {}, which is none of tiktoken's encodings", counted(ranks.count(), "rank")),
        "name the encoding whose pattern it uses, in a config as `data.encoding` and for `trainctl tokenizer` as "
        "--encoding: " +
            names);
  }
  PipelineParts parts;
  parts.kind = "byte-level BPE (" + std::string(found->name) + ")";
  parts.bytes = true;
  for (const SpecialToken& token : found->special) {
    if (ranks.has(token.id)) {
      throw Error(ErrorKind::data, SourceLocation{path},
                  format("the rank {} belongs to the special token {} of {}", token.id, token.text, found->name),
                  "name another encoding: " + names);
    }
    parts.added.push_back({token.text, token.id, true});
  }
  parts.splitter = make_splitter(found->pattern);
  Merges merges = merges_of_ranks(ranks);
  parts.model = make_bpe(std::move(ranks), std::move(merges), {.bytes = true, .whole_tokens = true});
  return make_pipeline(std::move(parts));
}

}  // namespace trainctl
