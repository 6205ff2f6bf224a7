// Makes a tokenizer of the parts of a tokenizer.json.
#include "io/text/files/tokenizer_json.h"

#include "core/base/error.h"
#include "core/base/format.h"
#include "io/text/files/json_parts.h"
#include "io/text/models/vocabulary.h"

namespace trainctl {
namespace {

void read_added_tokens(const Json& json, PipelineParts& parts) {
  for (const Json& each : json) {
    AddedToken token;
    token.text = json_value<std::string>(each, "content");
    const auto id = json_value<std::int64_t>(each, "id");
    if (id < 0 || id > largest_token) throw Error(ErrorKind::data, format("added_tokens: the id {} is not valid", id));
    token.id = static_cast<TokenId>(id);
    token.special = value_or(each, "special", false);
    token.single_word = value_or(each, "single_word", false);
    token.left_strip = value_or(each, "lstrip", false);
    token.right_strip = value_or(each, "rstrip", false);
    token.normalized = value_or(each, "normalized", !token.special);
    if (!token.text.empty()) parts.added.push_back(std::move(token));
  }
}

// The ids before and after a text must be tokens.
void check_frame(const PipelineParts& parts) {
  TokenId size = parts.model->size();
  for (const AddedToken& token : parts.added) size = std::max(size, token.id + 1);
  for (const auto* ids : {&parts.before, &parts.after}) {
    for (const TokenId id : *ids) {
      if (id < 0 || id >= size) throw Error(ErrorKind::data, format("post_processor: no token has the id {}", id));
    }
  }
}

const Json& part_of_file(const Json& file, const char* key) {
  static const Json none;
  const auto found = file.find(key);
  return found == file.end() ? none : *found;
}

}  // namespace

std::unique_ptr<Tokenizer> read_tokenizer_json(std::string_view text, const std::string& path) {
  const TokenizerJson file = parse_tokenizer_json(text, path);
  PipelineParts parts;
  try {
    read_added_tokens(part_of_file(*file.rest, "added_tokens"), parts);
    read_normalizers(part_of_file(*file.rest, "normalizer"), parts);
    read_pre_tokenizers(part_of_file(*file.rest, "pre_tokenizer"), parts);
    read_model(file, parts);
    read_decoder(part_of_file(*file.rest, "decoder"), parts);
    read_post_processor(part_of_file(*file.rest, "post_processor"), parts);
    check_frame(parts);
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::data, SourceLocation{path}, format("not a valid tokenizer.json: {}", json_problem(error)),
                "download the file or copy it again");
  } catch (const Error& error) {
    throw Error(error.kind(), SourceLocation{path}, format("not a tokenizer that trainctl can read: {}", error.what()));
  }
  return make_pipeline(std::move(parts));
}

}  // namespace trainctl
