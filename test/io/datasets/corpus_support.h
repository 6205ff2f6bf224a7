// Shared by the tests of texts: random texts, and data of a config with a cache of its own.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "io/loader/data.h"
#include "io/loader/splits/split.h"
#include "io/text/load.h"
#include "test/catch.h"
#include "test/support/files.h"

namespace trainctl::test {

inline bool contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  UNSCOPED_INFO("it is: " << text);
  return false;
}

// Lines of random words with some characters of two to four bytes.
inline std::string random_text(std::size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  const std::vector<std::string> letters = {"a", "b", "e", "n",      "s",      "t",
                                            "o", "A", "Q", "\u00e9", "\u4e2d", "\U0001f600"};
  const std::vector<std::string> ends = {" ", " ", " ", " ", ", ", ". ", "\n", "\n", "\n\n", "  "};
  std::string text;
  while (text.size() < bytes) {
    for (unsigned i = random() % 8 + 1; i > 0; --i) text += letters[std::min<std::size_t>(random() % 14, 11)];
    text += ends[random() % ends.size()];
  }
  return text;
}

// The ids of a text.
inline std::vector<TokenId> ids_of(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<TokenId> ids;
  tokenizer.make_encoder(SpecialText::plain)->encode(text, ids);
  return ids;
}

// How a model with an embedding of `tokens` rows and class numbers as targets uses its data.
inline DataUse token_use(std::int64_t tokens = 0) {
  DataUse use;
  use.inputs[0].tokens = tokens;
  use.targets[0].class_numbers = true;
  return use;
}

// A data set of texts, with a cache in the folder of the test.
struct OpenedText {
  OpenedText(const TempFolder& folder, const std::string& yaml, const DataUse& use = token_use(),
             const std::string& dataset = "text")
      : data(data_options(format("{{dataset: {}, cache_path: {}, {}}}", dataset, folder / "cache", yaml)), 1, use) {}

  // One sample: the values of each input, the classes and the weights.
  struct Row {
    std::vector<std::vector<std::int32_t>> inputs;
    std::vector<std::int32_t> classes;
    std::vector<float> weights;
  };

  // All samples of a split, in the order of the data set.
  std::vector<Row> rows(SplitKind split = SplitKind::training) const {
    const auto& of = *data.split(split);
    const std::vector<TargetEncoding> encodings{TargetEncoding::class_number};
    DataSplit::Scratch scratch = of.scratch(encodings);
    std::vector<Row> rows;
    for (std::int64_t i = 0; i < of.size(); ++i) {
      Row& row = rows.emplace_back();
      DataSplit::Row memory;
      row.inputs.resize(of.inputs());
      for (std::size_t k = 0; k < of.inputs(); ++k) {
        row.inputs[k].resize(static_cast<std::size_t>(of.input_type(k).shape.count()));
        memory.inputs.push_back(reinterpret_cast<std::byte*>(row.inputs[k].data()));
      }
      row.classes.resize(static_cast<std::size_t>(of.target_type(0, encodings[0]).shape.count()));
      memory.targets.push_back(reinterpret_cast<std::byte*>(row.classes.data()));
      row.weights.resize(static_cast<std::size_t>(of.weight_count()));
      memory.weights = row.weights.data();
      REQUIRE(of.read(of.subset()[i], false, 0, scratch, memory, encodings));
    }
    return rows;
  }

  Data data;
};

// The text of the error with which data is refused.
inline std::string text_error(const TempFolder& folder, const std::string& yaml, ErrorKind kind = ErrorKind::data,
                              const DataUse& use = token_use(), const std::string& dataset = "text") {
  try {
    const OpenedText opened(folder, yaml, use, dataset);
    opened.rows();
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  FAIL_CHECK("it was read: " << yaml);
  return "";
}

}  // namespace trainctl::test
