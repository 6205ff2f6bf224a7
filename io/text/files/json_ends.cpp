// Reads the decoder and the post-processor of tokenizer.json.
#include "core/base/error.h"
#include "core/base/format.h"
#include "io/text/files/json_parts.h"

namespace trainctl {
namespace {

using Join = DecoderOptions::Join;

void read_one_decoder(const Json& json, DecoderOptions& options) {
  const std::string type = json_value<std::string>(json, "type");
  if (type == "Sequence") {
    for (const Json& each : json.at("decoders")) read_one_decoder(each, options);
  } else if (type == "ByteLevel") {
    options.join = Join::bytes;
  } else if (type == "WordPiece") {
    options.join = Join::words;
    options.continuing_prefix = value_or<std::string>(json, "prefix", "##");
    options.clean_up = value_or(json, "cleanup", true);
  } else if (type == "Metaspace") {
    options.space = value_or<std::string>(json, "replacement", "\u2581");
    options.drop_first_spaces =
        value_or(json, "add_prefix_space", true) && value_or<std::string>(json, "prepend_scheme", "always") != "never";
  } else if (type == "BPEDecoder") {
    options.word_suffix = value_or<std::string>(json, "suffix", "</w>");
  } else if (type == "ByteFallback") {
    options.byte_tokens = true;
  } else if (type == "Replace" && json.at("content") == " " && json.at("pattern").contains("String")) {
    options.space = json_value<std::string>(json.at("pattern"), "String");
  } else if (type == "Strip" && json.at("content") == " " && json.at("start") == 1 && json.at("stop") == 0) {
    options.strip_first_space = true;
  } else if (type != "Fuse") {
    throw_unsupported("decoder", type);
  }
}

// The ids that [token, id] names.
TokenId framed(const Json& json) { return json.at(1).get<TokenId>(); }

// Items of the template may share their ids, so that their number may exceed that of the file's values.
void read_template(const Json& json, PipelineParts& parts) {
  constexpr std::size_t most_ids = 1000;
  bool after = false;
  for (const Json& item : json.at("single")) {
    if (item.contains("Sequence")) {
      after = true;
      continue;
    }
    const std::string name = json_value<std::string>(item.at("SpecialToken"), "id");
    for (const Json& id : json.at("special_tokens").at(name).at("ids")) {
      (after ? parts.after : parts.before).push_back(id.get<TokenId>());
      if (parts.before.size() + parts.after.size() <= most_ids) continue;
      throw Error(ErrorKind::data, format("post_processor: more than {} tokens around a text", most_ids));
    }
  }
}

}  // namespace

void read_decoder(const Json& json, PipelineParts& parts) {
  // Without a decoder, the library joins tokens by spaces, which makes no text of byte vocabularies.
  parts.decoder.join = parts.bytes ? Join::bytes : json.is_null() ? Join::words : Join::characters;
  if (!json.is_null()) read_one_decoder(json, parts.decoder);
  if (parts.decoder.join == Join::bytes && !parts.bytes)
    throw_unsupported("decoder of a model of characters", "ByteLevel");
}

void read_post_processor(const Json& json, PipelineParts& parts) {
  if (json.is_null()) return;
  const std::string type = json_value<std::string>(json, "type");
  if (type == "Sequence") {
    for (const Json& each : json.at("processors")) read_post_processor(each, parts);
  } else if (type == "TemplateProcessing") {
    read_template(json, parts);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    parts.before.push_back(framed(json.at("cls")));
    parts.after.push_back(framed(json.at("sep")));
  } else if (type != "ByteLevel") {
    throw_unsupported("post_processor", type);
  }
}

}  // namespace trainctl
