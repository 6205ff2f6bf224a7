// Normalizes the parts of a text that are not ASCII, each with the character before it, which a mark may join.
#include "io/text/unicode/normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/base/error.h"
#include "io/text/unicode/characters.h"

namespace trainctl {
namespace {

utf8proc_option_t options_of(NormalForm form) {
  int options = UTF8PROC_STABLE;
  options |= form == NormalForm::nfc || form == NormalForm::nfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::nfkc || form == NormalForm::nfkd) options |= UTF8PROC_COMPAT;
  return static_cast<utf8proc_option_t>(options);
}

// Appends the normal form of valid UTF-8.
void append_valid(std::string_view text, utf8proc_option_t options, std::string& out) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto size = static_cast<utf8proc_ssize_t>(text.size());
  thread_local std::vector<utf8proc_int32_t> codes;
  codes.resize(4 * text.size() + 32);
  utf8proc_ssize_t count = 0;
  while ((count = utf8proc_decompose(bytes, size, codes.data(), static_cast<utf8proc_ssize_t>(codes.size()), options)) >
         static_cast<utf8proc_ssize_t>(codes.size())) {
    codes.resize(static_cast<std::size_t>(count));
  }
  require(count >= 0, "utf8proc refuses valid UTF-8");
  count = utf8proc_normalize_utf32(codes.data(), count, options);
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    append_character(static_cast<char32_t>(codes[static_cast<std::size_t>(i)]), out);
  }
}

// Appends the normal form of a text. Bytes that are not UTF-8, and characters that Unicode 9 does not have, stay as
// they are, and nothing moves across them.
void append_parts(std::string_view text, utf8proc_option_t options, std::string& out) {
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Character character = first_character(text.substr(at));
    const bool invalid = character.code == replacement_character && character.length == 1;
    if (invalid || age_of(character.code) == Age::later) {
      if (at > done) append_valid(text.substr(done, at - done), options, out);
      out.append(text.substr(at, character.length));
      done = at + character.length;
    }
    at += character.length;
  }
  if (done < text.size()) append_valid(text.substr(done), options, out);
}

}  // namespace

void append_normal_form(std::string_view text, NormalForm form, std::string& out) {
  const utf8proc_option_t options = options_of(form);
  const auto ascii = [&](std::size_t i) { return static_cast<unsigned char>(text[i]) < 0x80; };
  for (std::size_t at = 0; at < text.size();) {
    std::size_t begin = at;
    while (begin < text.size() && ascii(begin)) ++begin;
    if (begin == text.size()) {
      out.append(text.substr(at));
      return;
    }
    if (begin > at) --begin;  // the character before a mark
    out.append(text.substr(at, begin - at));
    std::size_t end = begin + 1;
    while (end < text.size() && !ascii(end)) ++end;
    append_parts(text.substr(begin, end - begin), options, out);
    at = end;
  }
}

void append_lower_case(char32_t code, std::string& out) {
  if (code == 0x130) {  // the only character whose lower case is two characters
    out += "i\xcc\x87";
    return;
  }
  append_character(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))), out);
}

}  // namespace trainctl
