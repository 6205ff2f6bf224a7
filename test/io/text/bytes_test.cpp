// Tests encoding of bytes that are not UTF-8, decoding as a stream, and the vocabulary of bytes.
#include <random>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "io/text/load.h"
#include "test/catch.h"
#include "test/io/text/support.h"

namespace trainctl::test::bytes_test {
namespace {

TEST_CASE("the vocabulary of bytes has a token for each byte, and one that ends a document") {
  const auto bytes = load_tokenizer("bytes");
  CHECK(bytes->vocabulary_size() == 257);
  CHECK(ids_of(*bytes, "a\xff<|endoftext|>\n") == std::vector<TokenId>{97, 255, 256, 10});
  CHECK(ids_of(*bytes, "<|endoftext|>", SpecialText::plain).size() == 13);
  CHECK(bytes->decode(std::vector<TokenId>{97, 255, 256, 10}) == "a\xff<|endoftext|>\n");
  CHECK_THROWS_WITH(bytes->decode(std::vector<TokenId>{257}),
                    Catch::Matchers::Contains("no token has the id 257") && Catch::Matchers::Contains("0 to 256"));
}

TEST_CASE("byte-level vocabularies encode every sequence of bytes without loss") {
  std::mt19937 random(5);
  for (const std::string file : {"gpt2.json", "llama3.json", "o200k.json", "regex.json", "small.tiktoken"}) {
    const auto tokenizer = load_tokenizer(golden_path(file), file.ends_with("json") ? "" : "cl100k_base");
    CAPTURE(file);
    CHECK(tokenizer->takes_any_bytes());
    for (int round = 0; round < 200; ++round) {
      std::string text;
      for (int i = 0; i < 60; ++i) text += static_cast<char>(random() % 2 ? random() : "a '\n1\xc3\xa9"[random() % 7]);
      const auto ids = ids_of(*tokenizer, text, SpecialText::plain);
      REQUIRE(tokenizer->decode(ids) == text);
      // As a stream: the text so far never ends within a character that the next tokens complete.
      const auto decoder = tokenizer->make_decoder();
      std::string streamed;
      for (const TokenId id : ids) decoder->decode(id, streamed);
      REQUIRE(text.starts_with(streamed));
      REQUIRE(text.size() - streamed.size() <= 3);
      decoder->finish(streamed);
      REQUIRE(streamed == text);
    }
  }
}

TEST_CASE("a decoder holds back an unfinished character") {
  const auto bytes = load_tokenizer("bytes");
  const auto decoder = bytes->make_decoder();
  std::string text;
  for (const unsigned char byte : std::string("a\xf0\x9f\x98")) decoder->decode(byte, text);
  CHECK(text == "a");
  decoder->decode(0x80, text);
  CHECK(text == "a\xf0\x9f\x98\x80");
  decoder->decode(0xe2, text);
  decoder->decode('b', text);
  CHECK(text ==
        "a\xf0\x9f\x98\x80\xe2"
        "b");
}

TEST_CASE("a vocabulary of characters refuses bytes that are not UTF-8, with the file and the offset") {
  for (const char* file : {"bert.json", "unigram.json", "fallback.json", "words.json"}) {
    const auto tokenizer = load_tokenizer(golden_path(file));
    CHECK_FALSE(tokenizer->takes_any_bytes());
    std::vector<TokenId> ids;
    CHECK_THROWS_WITH(
        tokenizer->make_encoder()->encode("caf\xe9 au lait", ids, "menu.txt"),
        Catch::Matchers::Contains("menu.txt: byte 3 (0xe9) is not UTF-8") && Catch::Matchers::Contains("iconv"));
  }
}

}  // namespace
}  // namespace trainctl::test::bytes_test
