// Finds the tokens that are matched in the text itself before it is split, such as <|endoftext|>.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/text/tokenizer.h"

namespace trainctl {

struct AddedToken {
  std::string text;
  TokenId id = 0;
  bool special = false;      // left out of plain texts, and not recognized with SpecialText::plain
  bool single_word = false;  // matches only between characters that are not of words
  bool left_strip = false;   // takes the white space before it
  bool right_strip = false;  // takes the white space after it
  bool normalized = false;   // is looked for in the normalized text
};

// The places of added tokens in a text: of those that begin first the longest, without overlap. The white space that a
// token takes may hold further tokens, as for `tokenizers`.
class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);

  bool empty() const { return tokens_.empty(); }
  const std::vector<AddedToken>& tokens() const { return tokens_; }
  // The token with an id; null if there is none.
  const AddedToken* with_id(TokenId id) const;

  // Calls plain(text) for each part between tokens, which is not empty, and token(id) for each token, in their order.
  template <class Plain, class Token>
  void cut(std::string_view text, SpecialText special, const Plain& plain, const Token& token) const {
    std::size_t done = 0;
    for (Match match; find(text, done, special, match); done = match.end) {
      if (match.begin > done) plain(text.substr(done, match.begin - done));
      token(match.id);
    }
    if (done < text.size()) plain(text.substr(done));
  }

 private:
  struct Match {
    std::size_t begin = 0, end = 0;
    TokenId id = 0;
    std::size_t next = 0;  // where the search for the next token begins: the end of the token's own text
    std::size_t space_begin = 0, space_end = 0;  // the white space that was read last for a token that takes it
  };
  struct Node {
    unsigned char byte = 0;
    std::int32_t child = -1, sibling = -1, token = -1;  // indices of nodes, and of a token that ends here
  };

  // Moves from a match to the next one. `done`: the end of the last match, after which white space may be taken.
  bool find(std::string_view text, std::size_t done, SpecialText special, Match& match) const;
  std::int32_t longest_at(std::string_view text, std::size_t at) const;

  std::vector<AddedToken> tokens_;            // in the order of their ids
  std::vector<Node> nodes_;                   // a trie; node 0 is its root
  std::array<std::int32_t, 256> first_ = {};  // the node of the first byte; 0 if no token begins with it
  int only_first_ = -1;                       // the byte with which all tokens begin; -1 if they differ
};

}  // namespace trainctl
