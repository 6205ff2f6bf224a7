// Reads normalizers and pre-tokenizers of tokenizer.json.
#include "core/base/error.h"
#include "core/base/format.h"
#include "io/text/files/base64.h"
#include "io/text/files/json_parts.h"
#include "io/text/pipeline/growth.h"
#include "io/text/unicode/characters.h"

namespace trainctl {
namespace {

std::unique_ptr<Normalizer> replace_of(const Json& json) {
  const Json& pattern = json.at("pattern");
  const std::string by = inserted(json_value<std::string>(json, "content"));
  if (pattern.contains("Regex")) return make_regex_replace(json_value<std::string>(pattern, "Regex"), by);
  const std::string text = json_value<std::string>(pattern, "String");
  if (text.empty()) throw Error(ErrorKind::data, "a Replace normalizer replaces an empty text");
  return make_replace(text, by);
}

std::unique_ptr<Normalizer> bert_of(const Json& json) {
  BertOptions options;
  options.clean_text = value_or(json, "clean_text", true);
  options.separate_cjk = value_or(json, "handle_chinese_chars", true);
  options.lower_case = value_or(json, "lowercase", true);
  options.strip_accents = value_or(json, "strip_accents", options.lower_case);
  return make_bert_normalizer(options);
}

std::unique_ptr<Normalizer> precompiled_of(const Json& json) {
  std::string bytes;
  if (!append_base64(json_value<std::string>(json, "precompiled_charsmap"), bytes)) {
    throw Error(ErrorKind::data, "precompiled_charsmap is not base64");
  }
  return bytes.empty() ? nullptr : make_precompiled_normalizer(std::move(bytes));
}

std::unique_ptr<Normalizer> normalizer_of(const Json& json) {
  const std::string type = json_value<std::string>(json, "type");
  if (type == "NFC") return make_unicode_normalizer(NormalForm::nfc);
  if (type == "NFD") return make_unicode_normalizer(NormalForm::nfd);
  if (type == "NFKC") return make_unicode_normalizer(NormalForm::nfkc);
  if (type == "NFKD") return make_unicode_normalizer(NormalForm::nfkd);
  if (type == "Lowercase") return make_lower_case();
  if (type == "StripAccents") return make_strip_accents();
  if (type == "Strip") return make_strip(value_or(json, "strip_left", true), value_or(json, "strip_right", true));
  if (type == "Prepend") return make_prepend(inserted(json_value<std::string>(json, "prepend")));
  if (type == "Replace") return replace_of(json);
  if (type == "Nmt") return make_nmt();
  if (type == "BertNormalizer") return bert_of(json);
  if (type == "Precompiled") return precompiled_of(json);
  throw_unsupported("normalizer", type);
}

MatchedPart part_of(const Json& json) {
  const std::string name = json_value<std::string>(json, "behavior");
  if (name == "Removed") return MatchedPart::removed;
  if (name == "Isolated") return MatchedPart::isolated;
  if (name == "MergedWithPrevious") return MatchedPart::merged_with_previous;
  if (name == "MergedWithNext") return MatchedPart::merged_with_next;
  if (name == "Contiguous") return MatchedPart::contiguous;
  throw_unsupported("behavior", name);
}

// What one pre-tokenizer does; a pattern that covers all of a text is a splitter.
struct ReadStep {
  std::unique_ptr<Splitter> splitter;
  std::vector<std::unique_ptr<SplitStep>> steps;
  bool bytes = false;
};

void read_split(const Json& json, ReadStep& step) {
  const Json& pattern = json.at("pattern");
  const MatchedPart part = part_of(json);
  const bool inverted = value_or(json, "invert", false);
  if (!pattern.contains("Regex")) {
    const std::string text = json_value<std::string>(pattern, "String");
    if (text.empty()) throw Error(ErrorKind::data, "a Split pre-tokenizer splits at an empty text");
    step.steps.push_back(make_literal_step(text, part, inverted));
    return;
  }
  const std::string regex = json_value<std::string>(pattern, "Regex");
  Pattern known = Pattern::gpt2;
  // Each known pattern matches all of a text, so that these two mean the same.
  const bool each_match = (part == MatchedPart::isolated && !inverted) || (part == MatchedPart::removed && inverted);
  if (each_match && find_pattern(regex, known)) {
    step.splitter = make_splitter(known);
  } else {
    step.steps.push_back(make_regex_step(regex, part, inverted));
  }
}

ReadStep step_of(const Json& json) {
  const std::string type = json_value<std::string>(json, "type");
  ReadStep step;
  if (type == "ByteLevel") {
    step.bytes = true;
    if (value_or(json, "add_prefix_space", true)) step.steps.push_back(make_prefix_space_step());
    if (value_or(json, "use_regex", true)) step.splitter = make_splitter(Pattern::gpt2);
  } else if (type == "Split") {
    read_split(json, step);
  } else if (type == "Whitespace") {
    step.steps.push_back(make_word_step());
  } else if (type == "WhitespaceSplit") {
    step.steps.push_back(make_character_step(is_white_space, MatchedPart::removed));
  } else if (type == "BertPreTokenizer") {
    step.steps.push_back(make_character_step(is_white_space, MatchedPart::removed));
    step.steps.push_back(make_character_step(is_bert_punctuation, MatchedPart::isolated));
  } else if (type == "Punctuation") {
    const MatchedPart part = json.contains("behavior") ? part_of(json) : MatchedPart::isolated;
    step.steps.push_back(make_character_step(is_bert_punctuation, part));
  } else if (type == "Digits") {
    const bool each = value_or(json, "individual_digits", false);
    step.steps.push_back(make_character_step([](char32_t code) { return is_number(category_of(code)); },
                                             each ? MatchedPart::isolated : MatchedPart::contiguous));
  } else if (type == "CharDelimiterSplit") {
    const std::string text = json_value<std::string>(json, "delimiter");
    if (text.empty()) throw Error(ErrorKind::data, "a CharDelimiterSplit has no delimiter");
    step.steps.push_back(make_literal_step(text, MatchedPart::removed, false));
  } else if (type == "Metaspace") {
    const std::string scheme =
        value_or<std::string>(json, "prepend_scheme", value_or(json, "add_prefix_space", true) ? "always" : "never");
    if (scheme != "always" && scheme != "first" && scheme != "never") throw_unsupported("prepend_scheme", scheme);
    const Prepend prepend = scheme == "always" ? Prepend::always : scheme == "first" ? Prepend::first : Prepend::never;
    const std::string replacement = inserted(value_or<std::string>(json, "replacement", "\u2581"));
    if (replacement.empty()) throw Error(ErrorKind::data, "a Metaspace pre-tokenizer has no replacement");
    step.steps.push_back(make_metaspace_step(replacement, prepend, value_or(json, "split", true)));
  } else {
    throw_unsupported("pre_tokenizer", type);
  }
  return step;
}

// Calls read(json) for a part, or for each part of a sequence of them.
template <class Read>
void for_each_part(const Json& json, const char* list, const Read& read) {
  if (json.is_null()) return;
  if (json.at("type") != "Sequence") return read(json);
  for (const Json& each : json.at(list)) for_each_part(each, list, read);
}

}  // namespace

void throw_unsupported(const std::string& part, const std::string& kind) {
  throw Error(ErrorKind::data, format("the {} '{}' is not supported", part, kind.substr(0, 60)),
              "use another tokenizer, or encode the text with the library that made the file");
}

void read_normalizers(const Json& json, PipelineParts& parts) {
  for_each_part(json, "normalizers", [&parts](const Json& each) {
    if (auto normalizer = normalizer_of(each)) parts.normalizers.push_back(std::move(normalizer));
  });
}

void read_pre_tokenizers(const Json& json, PipelineParts& parts) {
  for_each_part(json, "pretokenizers", [&parts](const Json& each) {
    if (parts.bytes) {
      throw Error(ErrorKind::data, "a pre-tokenizer follows ByteLevel, which is not supported",
                  "use a tokenizer whose last pre-tokenizer is ByteLevel");
    }
    ReadStep step = step_of(each);
    parts.bytes |= step.bytes;
    if (step.splitter && step.steps.empty() && !parts.splitter && parts.steps.empty()) {
      parts.splitter = std::move(step.splitter);  // the only step so far
      return;
    }
    if (step.steps.empty() && !step.splitter) return;
    if (parts.splitter) parts.steps.push_back(make_pattern_step(std::move(parts.splitter)));
    for (auto& one : step.steps) parts.steps.push_back(std::move(one));
    if (step.splitter) parts.steps.push_back(make_pattern_step(std::move(step.splitter)));
  });
}

}  // namespace trainctl
