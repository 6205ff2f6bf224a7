// Opens tokenizers by path, and finds their special tokens by the usual names.
#include "io/datasets/text/text_tokenizer.h"

#include <algorithm>
#include <initializer_list>
#include <mutex>
#include <utility>

#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "core/base/utf8.h"
#include "io/datasets/dataset.h"
#include "io/text/load.h"

namespace trainctl {
namespace {

constexpr FileRole tokenizer_role{ErrorKind::data,
                                  "give the path of a tokenizer.json, a rank file of tiktoken or a model of "
                                  "SentencePiece, or the word bytes"};

std::string tokenizer_file_in(const std::string& folder) {
  for (const char* name : {"tokenizer.json", "tokenizer.model", "spiece.model"}) {
    if (exists(folder + "/" + name)) return folder + "/" + name;
  }
  std::string found;
  for (const FolderEntry& entry : list_folder(folder, tokenizer_role)) {
    if (!entry.name.ends_with(".tiktoken")) continue;
    if (!found.empty()) data_error(folder, "holds several .tiktoken files", "give the path of one of them");
    found = folder + "/" + entry.name;
  }
  if (found.empty()) {
    data_error(folder, "holds no tokenizer: neither tokenizer.json, tokenizer.model, spiece.model nor a .tiktoken file",
               std::string(tokenizer_role.if_missing));
  }
  return found;
}

using TokenNames = std::initializer_list<std::string_view>;

// The first special token that has one of the names, in the order of the names.
std::optional<TokenId> special_token(const Tokenizer& tokenizer, TokenNames names) {
  const auto& special = tokenizer.special_tokens();
  for (const std::string_view name : names) {
    const auto found =
        std::find_if(special.begin(), special.end(), [name](const SpecialToken& token) { return token.text == name; });
    if (found != special.end()) return found->id;
  }
  return std::nullopt;
}

// The special token that the option `key` names: one of the `usual` names if its value is auto.
std::optional<TokenId> chosen_token(const TextTokenizer& tokenizer, const std::string& value, const char* key,
                                    TokenNames usual) {
  if (value == "none") return std::nullopt;
  const Tokenizer& of = *tokenizer.tokenizer;
  if (value == "auto") return special_token(of, usual);
  if (const auto found = special_token(of, {value})) return found;
  std::string all;
  constexpr std::size_t shown = 12;
  const auto& special = of.special_tokens();
  for (std::size_t i = 0; i < std::min(shown, special.size()); ++i) all += (i > 0 ? ", " : "") + special[i].text;
  throw Error(ErrorKind::config, format("{} has no special token '{}'", tokenizer.path, value),
              all.empty() ? format("it has none at all: set `{}: none`", key)
                          : format("its special tokens are: {}{}", all, special.size() > shown ? ", ..." : ""));
}

// Returns the first token that shows characters by itself, without special tokens; -1 if there is none.
TokenId first_shown(const Tokenizer& tokenizer) {
  const auto& special = tokenizer.special_tokens();
  for (std::int64_t i = 0; i < tokenizer.vocabulary_size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (std::ranges::any_of(special, [id](const SpecialToken& token) { return token.id == id; })) continue;
    try {
      const std::string text = tokenizer.decode(std::vector{id});
      if (!text.empty() && text != "\xEF\xBF\xBD" && !find_invalid_utf8(text)) return id;
    } catch (const Error&) {  // vocabularies may leave out ids
    }
  }
  return -1;
}

}  // namespace

void check_encoding(const std::string& encoding, bool has_tokenizer, const Node& data, Reader& reader) {
  if (encoding == automatic_encoding || has_tokenizer) return;
  reader.error(data.find("encoding")->location,
               "`encoding` says how to read a rank file of tiktoken: name the file with `tokenizer`");
}

TextTokenizer open_tokenizer(const TokenizerName& name, const std::string& option) {
  const std::string encoding = option == automatic_encoding ? "" : option;
  if (std::holds_alternative<NamedTokenizer>(name)) return {load_tokenizer("bytes", encoding), "bytes", "bytes"};
  std::string path = std::get<Path>(name).text;
  if (is_folder(path, tokenizer_role)) path = tokenizer_file_in(path);
  const std::string content = read_file(path, largest_tokenizer_file, tokenizer_role);
  std::string hash = sha256(content.data(), content.size());
  if (!encoding.empty()) hash += " " + encoding;
  return {read_tokenizer(content, path, encoding), path, std::move(hash)};
}

std::optional<TokenId> end_token_of(const TextTokenizer& tokenizer, const std::string& option) {
  return chosen_token(tokenizer, option, "end_token",
                      {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|eos|>", "<|im_end|>", "[SEP]"});
}

std::optional<TokenId> begin_token_of(const TextTokenizer& tokenizer, const std::string& option) {
  return chosen_token(tokenizer, option, "begin_token", {"<|begin_of_text|>", "<s>", "<bos>", "<|startoftext|>"});
}

std::vector<float> bytes_of_tokens(const Tokenizer& tokenizer) {
  const TokenId shown = tokenizer.takes_any_bytes() ? -1 : first_shown(tokenizer);
  std::vector<float> bytes(static_cast<std::size_t>(tokenizer.vocabulary_size()));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    try {
      const std::string once = tokenizer.decode(std::vector{id});
      if (tokenizer.takes_any_bytes()) {
        bytes[i] = static_cast<float>(once.size());
      } else if (once == "\xEF\xBF\xBD" || (once.size() == 1 && (once[0] & 0x80) != 0)) {  // a byte of a character
        bytes[i] = 1;
      } else {  // the first tokens of a text may lose their spaces
        const TokenId before = once.empty() && shown >= 0 ? shown : id;
        const std::size_t alone = tokenizer.decode(std::vector{before}).size();
        const std::string both = tokenizer.decode(std::vector{before, id});
        bytes[i] = static_cast<float>(both.size() - std::min(both.size(), alone));
      }
    } catch (const Error&) {  // vocabularies may leave out ids
    }
  }
  for (const SpecialToken& token : tokenizer.special_tokens()) {
    // Some vocabularies list the bytes among them.
    if (tokenizer.decode(std::vector{token.id}) == token.text) bytes[static_cast<std::size_t>(token.id)] = 0;
  }
  // Nothing tells how much text the unknown token replaced.
  if (const auto unknown = tokenizer.unknown_token()) bytes[static_cast<std::size_t>(*unknown)] = 0;
  return bytes;
}

std::function<std::shared_ptr<const std::vector<float>>()> counter_of_bytes(
    std::shared_ptr<const Tokenizer> tokenizer) {
  struct Counted {
    std::once_flag once;
    std::shared_ptr<const std::vector<float>> bytes;
  };
  return [tokenizer = std::move(tokenizer), counted = std::make_shared<Counted>()] {
    std::call_once(counted->once,
                   [&] { counted->bytes = std::make_shared<const std::vector<float>>(bytes_of_tokens(*tokenizer)); });
    return counted->bytes;
  };
}

TokenId padding_token_of(const Tokenizer& tokenizer) {
  return special_token(tokenizer, {"[PAD]", "<pad>", "<|pad|>"}).value_or(0);
}

}  // namespace trainctl
