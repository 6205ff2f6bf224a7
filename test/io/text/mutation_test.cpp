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
}

}  // namespace trainctl::test::text_mutation_test
