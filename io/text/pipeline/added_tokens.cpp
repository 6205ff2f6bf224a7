// Searches a trie of added tokens at each byte with which one of them begins.
#include "io/text/pipeline/added_tokens.h"

#include <algorithm>
#include <cstring>

#include "core/base/utf8.h"
#include "io/text/unicode/characters.h"

namespace trainctl {
namespace {

// The beginning of the last character of a text that is not empty.
std::size_t last_character(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && text.size() - at < 4 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
  return utf8_length(text.substr(at)) == text.size() - at ? at : text.size() - 1;
}

bool ends_with_word(std::string_view text) {
  return !text.empty() && is_word_character(first_character(text.substr(last_character(text))).code);
}

bool begins_with_word(std::string_view text) { return !text.empty() && is_word_character(first_character(text).code); }

std::size_t end_of_white_space(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const Character next = first_character(text.substr(at));
    if (!is_white_space(next.code)) break;
    at += next.length;
  }
  return at;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)), nodes_(1) {
  std::stable_sort(tokens_.begin(), tokens_.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    std::int32_t node = 0;
    for (const char c : tokens_[i].text) {
      const auto byte = static_cast<unsigned char>(c);
      std::int32_t next = nodes_[static_cast<std::size_t>(node)].child;
      while (next >= 0 && nodes_[static_cast<std::size_t>(next)].byte != byte) {
        next = nodes_[static_cast<std::size_t>(next)].sibling;
      }
      if (next < 0) {
        next = static_cast<std::int32_t>(nodes_.size());
        nodes_.push_back({byte, -1, nodes_[static_cast<std::size_t>(node)].child, -1});
        nodes_[static_cast<std::size_t>(node)].child = next;
      }
      node = next;
    }
    if (node != 0) nodes_[static_cast<std::size_t>(node)].token = static_cast<std::int32_t>(i);
  }
  int count = 0;
  for (std::int32_t node = nodes_[0].child; node >= 0; node = nodes_[static_cast<std::size_t>(node)].sibling) {
    const unsigned char byte = nodes_[static_cast<std::size_t>(node)].byte;
    first_[byte] = node;
    only_first_ = byte;
    ++count;
  }
  if (count != 1) only_first_ = -1;
}

const AddedToken* AddedTokens::with_id(TokenId id) const {
  const auto at =
      std::lower_bound(tokens_.begin(), tokens_.end(), id, [](const AddedToken& a, TokenId b) { return a.id < b; });
  return at != tokens_.end() && at->id == id ? &*at : nullptr;
}

std::int32_t AddedTokens::longest_at(std::string_view text, std::size_t at) const {
  std::int32_t longest = -1;
  for (std::int32_t node = first_[static_cast<unsigned char>(text[at])]; node > 0;) {
    const Node& here = nodes_[static_cast<std::size_t>(node)];
    if (here.token >= 0) longest = here.token;
    if (++at == text.size()) break;
    node = here.child;
    while (node >= 0 && nodes_[static_cast<std::size_t>(node)].byte != static_cast<unsigned char>(text[at])) {
      node = nodes_[static_cast<std::size_t>(node)].sibling;
    }
  }
  return longest;
}

bool AddedTokens::find(std::string_view text, std::size_t done, SpecialText special, Match& match) const {
  if (tokens_.empty()) return false;
  std::size_t space_begin = match.space_begin, space_end = match.space_end;
  for (std::size_t at = match.next; at < text.size(); ++at) {
    if (only_first_ >= 0) {
      const void* found = std::memchr(text.data() + at, only_first_, text.size() - at);
      if (found == nullptr) return false;
      at = static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
    } else {
      while (at < text.size() && first_[static_cast<unsigned char>(text[at])] == 0) ++at;
      if (at == text.size()) return false;
    }
    const std::int32_t index = longest_at(text, at);
    if (index < 0) continue;
    const AddedToken& token = tokens_[static_cast<std::size_t>(index)];
    match = {at, at + token.text.size(), token.id, at + token.text.size(), space_begin, space_end};
    const bool refused = (token.special && special == SpecialText::plain) ||
                         (token.single_word &&
                          (ends_with_word(text.substr(0, match.begin)) || begins_with_word(text.substr(match.end))));
    if (refused) {
      at = match.end - 1;
      continue;
    }
    if (token.left_strip) {
      while (match.begin > done) {
        const std::size_t before = last_character(text.substr(done, match.begin - done)) + done;
        if (!is_white_space(first_character(text.substr(before)).code)) break;
        match.begin = before;
      }
      match.begin = std::max(match.begin, done);
    }
    if (token.right_strip) {
      // Tokens inside of white space that was read before have the same end.
      if (match.end < space_begin || match.end > space_end) {
        space_begin = match.end;
        space_end = end_of_white_space(text, match.end);
      }
      match.end = space_end;
    }
    match.space_begin = space_begin, match.space_end = space_end;
    if (match.begin >= match.end) {  // the token before it has taken all of it
      at = match.next - 1;
      continue;
    }
    return true;
  }
  return false;
}

}  // namespace trainctl
