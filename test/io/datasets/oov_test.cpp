// Tests several values for words that the training file does not have.
#include <algorithm>

#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/files.h"

namespace trainctl::test::oov_test {
namespace {

const std::vector<std::string> words{"Oslo", "Paris", "Rome",  "",      "Bern", "Lima",
                                     "Kyiv", "Cairo", "Quito", "Accra", "Basel"};
// Of Keras' StringLookup(num_oov_indices=3, vocabulary=["Bern", "Oslo", "Rome"]).
const std::vector<int> numbers{4, 0, 5, 2, 3, 0, 2, 1, 2, 0, 0};

}  // namespace

TEST_CASE("csv: num_oov_indices gives unknown words the numbers of Keras' StringLookup") {
  const TempFolder folder;
  write_file(folder / "t.csv", "city,a,y\nOslo,1,0\nRome,2,1\nBern,3,0\nOslo,4,1\n");
  std::string held_out = "city,a,y\n";
  for (const std::string& word : words) held_out += word + ",1,0\n";
  write_file(folder / "v.csv", held_out);
  const std::string files = format(
      "dataset: csv, path: {}, validation: {{path: {}}}, num_oov_indices: 3, workers: 0, missing: zero, target: y",
      folder / "t.csv", folder / "v.csv");
  const auto count = std::ssize(words);

  const DataUse embedding{{{"city", 6}, {"rest"}}, {{""}}, {}};
  const Data tokens(data_options(format("{{{}, categorical: [city], inputs: {{city: city, rest: a}}}}", files)), 1,
                    embedding);
  const auto evaluation = tokens.evaluation(SplitKind::validation, count, {}, 1);
  const Batch& batch = evaluation->next();
  for (std::int64_t i = 0; i < count; ++i) {
    CHECK(batch.inputs[0].as<std::int32_t>()[i] == numbers[static_cast<std::size_t>(i)]);
  }

  const Data values(data_options(format("{{{}, categorical: [city], columns: [city]}}", files)), 1);
  CHECK(values.info().inputs[0].sample == Shape{6});
  const auto one_hot = values.evaluation(SplitKind::validation, count, {}, 1);
  const Batch& rows = one_hot->next();
  for (std::int64_t i = 0; i < count; ++i) {
    for (int k = 0; k < 6; ++k) {
      const auto at = static_cast<std::size_t>(i);
      const bool is_set = k == numbers[at] && !words[at].empty();
      CHECK(rows.inputs[0].as<float>()[6 * i + k] == (is_set ? 1.0f : 0.0f));
    }
  }
}

TEST_CASE("csv: num_oov_indices holds for words that only held-out lines of the file have") {
  const TempFolder folder;
  std::string table = "city,y\n";
  for (int i = 0; i < 300; ++i) table += format("{},{}\n", i < 290 ? "Bern" : format("only{}", i), i % 2);
  write_file(folder / "t.csv", table);
  const Data data(data_options(format("{{dataset: csv, path: {}, num_oov_indices: 4, categorical: [city], validation: "
                                      "{{split: 0.5}}, workers: 0}}",
                                      folder / "t.csv")),
                  1);
  const std::int64_t width = data.info().inputs[0].sample[0];
  const auto source = data.evaluation(SplitKind::validation, 150, {}, 1);
  const Batch& batch = source->next();
  std::int64_t others = 0, first = 0;
  for (std::int64_t i = 0; i < 150; ++i) {
    const float* row = batch.inputs[0].as<float>() + i * width;
    CHECK(std::count(row, row + width, 1.0f) == 1);
    const auto which = std::find(row, row + width, 1.0f) - row;
    others += which < 4;
    first += which == 0;
  }
  CHECK(others > 0);
  CHECK(first < others);
}

}  // namespace trainctl::test::oov_test
