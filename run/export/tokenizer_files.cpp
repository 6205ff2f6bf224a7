// Copies a tokenizer's files, and finds its special tokens by their usual names.
#include "run/export/tokenizer_files.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/files.h"
#include "core/base/json_parse.h"
#include "io/checkpoint/atomic_file.h"
#include "io/text/load.h"

namespace trainctl {
namespace {

constexpr const char* config_file = "tokenizer_config.json";
constexpr const char* map_file = "special_tokens_map.json";

// The names that published vocabularies give to the tokens of a purpose; empty after the last one.
struct UsualNames {
  const char* key;
  std::array<std::string_view, 4> names;
};
constexpr UsualNames usual_names[] = {{"pad_token", {"[PAD]", "<pad>", "<|pad|>", "<|finetune_right_pad_id|>"}},
                                      {"unk_token", {"[UNK]", "<unk>", "<|unk|>"}},
                                      {"cls_token", {"[CLS]", "<cls>"}},
                                      {"sep_token", {"[SEP]", "<sep>"}},
                                      {"mask_token", {"[MASK]", "<mask>", "<|mask|>"}}};

std::string folder_of_file(const std::string& path) { return path.substr(0, path.rfind('/')); }
std::string name_of_file(const TextTokenizer& tokenizer) {
  return tokenizer.path.substr(tokenizer.path.rfind('/') + 1);
}

// The object of a file beside the tokenizer's; an empty object if there is no such file, or another value in it.
Json object_beside(const TextTokenizer& tokenizer, const char* name) {
  const std::string path = folder_of_file(tokenizer.path) + "/" + name;
  if (!exists(path)) return Json::object();
  JsonFault ignored;
  Json json = parse_json(read_file(path, largest_tokenizer_file), ignored);
  return json.is_object() ? json : Json::object();
}

const SpecialToken* special_token(const TextTokenizer& tokenizer, std::string_view text) {
  const auto& special = tokenizer.tokenizer->special_tokens();
  const auto found =
      std::find_if(special.begin(), special.end(), [&](const auto& token) { return token.text == text; });
  return found == special.end() ? nullptr : &*found;
}

// The text of a token that stands for itself; empty for tokens of text.
std::string text_of(const TextTokenizer& tokenizer, std::optional<TokenId> id) {
  for (const SpecialToken& token : tokenizer.tokenizer->special_tokens()) {
    if (id == token.id) return token.text;
  }
  return {};
}

// The special tokens of the vocabulary by the keys of tokenizer_config.json.
Json tokens_by_purpose(const TextTokenizer& tokenizer, const TokenizerUse& use) {
  Json tokens = Json::object();
  const auto set = [&](const char* key, const std::string& text) {
    if (!text.empty()) tokens[key] = text;
  };
  set("bos_token", text_of(tokenizer, use.begin_token));
  set("eos_token", text_of(tokenizer, use.end_token));
  for (const UsualNames& usual : usual_names) {
    for (const std::string_view name : usual.names) {
      if (name.empty() || special_token(tokenizer, name) == nullptr) continue;
      tokens[usual.key] = name;
      break;
    }
  }
  set("unk_token", text_of(tokenizer, tokenizer.tokenizer->unknown_token()));
  return tokens;
}

}  // namespace

bool is_read_by_transformers(const TextTokenizer& tokenizer) {
  const std::string file = name_of_file(tokenizer);
  return file.ends_with(".json") || file == "tokenizer.model" || file == "spiece.model";
}

void write_tokenizer_files(const TextTokenizer& tokenizer, const TokenizerUse& use, const std::string& folder) {
  const std::string file = name_of_file(tokenizer);
  const bool json = file.ends_with(".json");
  write_file(folder + "/" + (json ? "tokenizer.json" : file), read_file(tokenizer.path, largest_tokenizer_file));
  const Json map = object_beside(tokenizer, map_file);
  Json config = object_beside(tokenizer, config_file);
  // Of a model of SentencePiece, config.json names the family, from which transformers takes the class.
  if (json && !config.contains("tokenizer_class")) config["tokenizer_class"] = "PreTrainedTokenizerFast";
  const Json tokens = tokens_by_purpose(tokenizer, use);
  for (const auto& [key, token] : tokens.items()) {
    if (!config.contains(key) && !map.contains(key)) config[key] = token;
  }
  if (use.positions && !config.contains("model_max_length")) config["model_max_length"] = *use.positions;
  write_file(folder + "/" + config_file, json_text(config, 2) + "\n");
  if (!map.empty()) write_file(folder + "/" + map_file, json_text(map, 2) + "\n");
}

std::optional<TokenId> described_token(const TextTokenizer& tokenizer, const char* key) {
  for (const char* name : {config_file, map_file}) {
    const Json json = object_beside(tokenizer, name);
    if (!json.contains(key)) continue;
    const Json& token = json[key].is_object() && json[key].contains("content") ? json[key]["content"] : json[key];
    if (!token.is_string()) continue;
    if (const SpecialToken* found = special_token(tokenizer, token.get<std::string>())) return found->id;
  }
  return std::nullopt;
}

}  // namespace trainctl
