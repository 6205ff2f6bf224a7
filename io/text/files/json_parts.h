// Reads the parts of tokenizer.json, each in a file of its own. They throw Error{data} or Json::exception for a missing
// key or a value of another type, and Error{data} for a part that is not supported.
#pragma once

#include <string>

#include "core/base/json_parse.h"
#include "io/text/files/tokenizer_json.h"
#include "io/text/pipeline/pipeline.h"

namespace trainctl {

// Adds the normalizers of the key "normalizer".
void read_normalizers(const Json& json, PipelineParts& parts);
// Adds the splitter or the split steps of the key "pre_tokenizer", and sets parts.bytes.
void read_pre_tokenizers(const Json& json, PipelineParts& parts);
// Reads the key "model"; parts.bytes must be known.
void read_model(const TokenizerJson& file, PipelineParts& parts);
// Reads the keys "decoder" and "post_processor".
void read_decoder(const Json& json, PipelineParts& parts);
void read_post_processor(const Json& json, PipelineParts& parts);

// A key's value, or `otherwise` if the object lacks the key or has null there. Throws Error{data} for a value of
// another type.
template <class T>
T value_or(const Json& json, const char* key, T otherwise) {
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? otherwise : json_value<T>(json, key);
}

// Throws the Error for a part of a kind that is not supported, such as "normalizer", "Foo".
[[noreturn]] void throw_unsupported(const std::string& part, const std::string& kind);

}  // namespace trainctl
