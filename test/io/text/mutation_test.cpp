// Seeded fuzz tests: tokenizer files with bytes changed, cut out, repeated and cut off. Each file is read and encodes a
// text, or is refused with a data error that names it. TRAINCTL_MUTATIONS sets the number of mutations of each file.
#include "test/support/mutation.h"
#include "core/base/error.h"
#include "io/text/load.h"
#include "test/catch.h"
#include "test/io/text/support.h"

namespace trainctl::test::text_mutation_test {
namespace {

// Whether a file is read; what it encodes must decode without another error.
bool is_read(const std::string& content, const std::string& encoding) {
  try {
    const auto tokenizer = read_tokenizer(content, "mutated-file", encoding);
    const auto ids = ids_of(*tokenizer, "A truth's 123 \n\n  caf\xc3\xa9 \xe4\xbd\xa0\xe5\xa5\xbd <s>[CLS] sing");
    for (const TokenId id : ids) REQUIRE((id >= 0 && id < tokenizer->vocabulary_size()));
    tokenizer->decode(ids);
    return true;
  } catch (const Error& error) {
    const std::string text = error.what();
    const bool named =
        text.find("mutated-file") != std::string::npos || text.find("regular expression") != std::string::npos;
    const bool encoding_refused = error.kind() == ErrorKind::config && !encoding.empty();
    if ((error.kind() != ErrorKind::data || !named) && !encoding_refused) FAIL_CHECK("another error: " << text);
  } catch (const std::exception& error) {
    FAIL_CHECK("an exception other than Error: " << error.what());
  }
  return false;
}

}  // namespace

TEST_CASE("mutated files: tokenizer.json and rank files are read or refused") {
  for (const std::string name : {"gpt2.json", "prefix_space.json", "regex.json", "bert.json", "unigram.json",
                                 "fallback.json", "words.json", "small.tiktoken", "sp_unigram.model", "sp_bpe.model"}) {
    const std::string whole = golden(name), encoding = name.ends_with(".tiktoken") ? "cl100k_base" : "";
    REQUIRE(is_read(whole, encoding));
    std::mt19937 random(static_cast<unsigned>(whole.size()));
    int read = 0;
    for (int i = 0; i < mutations(); ++i) {
      INFO(name << ", mutation " << i);
      read += is_read(mutated(whole, random), encoding);
    }
    CHECK(read < mutations());
  }
}

TEST_CASE("hostile tokenizer files do not use memory out of proportion to their length") {
  const auto refused = [](const std::string& content, const std::string& message) {
    CHECK_THROWS_WITH(read_tokenizer(content, "hostile"),
                      Catch::Matchers::Contains("hostile") && Catch::Matchers::Contains(message));
  };
  refused(R"({"model":{"type":"BPE","vocab":{"a":16777215},"merges":[]}})", "the id 16777215 of 'a' is too large");
  refused(R"({"model":{"type":"BPE","vocab":{"a":99999999999},"merges":[]}})", "an id must be at most 16777215");
  refused(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":["a b"]}})", "entry 1: the vocabulary has no token 'b'");
  refused(R"({"model":{"type":"BPE","vocab":{"a":0,"a":1}}})", "the token 'a' or its id 1 occurs twice");
  refused(R"({"model":{"type":"Magic","vocab":{"a":0}}})", "the model 'Magic' is not supported");
  refused(R"({"pre_tokenizer":{"type":"Magic"},"model":{"type":"BPE","vocab":{}}})", "'Magic' is not supported");
  refused("{\"a\":" + std::string(1000, '['), "nested too deep");
  std::string keys = "{";
  for (int i = 0; i < 5000; ++i) keys += "\"k" + std::to_string(i) + "\":0,";
  refused(keys, "an object has more than 2000 keys");
  refused(R"({"normalizer":{"type":"Prepend","prepend":")" + std::string(65, 'a') + R"("},"model":{"vocab":{}}})",
          "inserts a text of 65 bytes");
  std::string many = R"({"type":"SpecialToken","SpecialToken":{"id":"a"}})", ids = "0";
  for (int i = 0; i < 40; ++i) many += R"(,{"SpecialToken":{"id":"a"}})", ids += ",0";
  refused(R"({"post_processor":{"type":"TemplateProcessing","single":[)" + many +
              R"(],"special_tokens":{"a":{"ids":[)" + ids + R"(]}}},"model":{"type":"WordLevel","vocab":{"a":0}}})",
          "more than 1000 tokens around a text");
}

TEST_CASE("the steps of a tokenizer file that make a text grow without bound are refused") {
  const auto error_of = [](const std::string& part, const std::string& step, const std::string& list) {
    std::string steps = step;
    for (int i = 0; i < 30; ++i) steps += "," + step;  // the text would grow to 2^31 times its length
    const std::string file = R"({")" + part + R"(":{"type":"Sequence",")" + list + "\":[" + steps +
                             R"(]},"model":{"type":"WordLevel","unk_token":"a","vocab":{"a":0}}})";
    const auto tokenizer = read_tokenizer(file, "growing");
    try {
      ids_of(*tokenizer, "a b");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::data);
      return std::string(error.what());
    }
    return std::string();
  };
  const auto grows = Catch::Matchers::Contains("more than 32 bytes of each byte");
  CHECK_THAT(error_of("normalizer", R"({"type":"Replace","pattern":{"String":"a"},"content":"aa"})", "normalizers"),
             grows);
  CHECK_THAT(error_of("normalizer", R"({"type":"Replace","pattern":{"Regex":"a"},"content":"aa"})", "normalizers"),
             grows);
  CHECK_THAT(error_of("pre_tokenizer", R"({"type":"Metaspace","replacement":"  ","split":false})", "pretokenizers"),
             grows);
}

}  // namespace trainctl::test::text_mutation_test
