// Tests report.html of runs, and `trainctl report`.
#include <regex>

#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::report_test {
namespace {

const std::string config = "name: reported\n" + uneven_data + mlp_model +
                           "train: {batch_size: 20, epochs: 3, optimizer: adam, loss: sparse_categorical_crossentropy, "
                           "metrics: [accuracy, confusion_matrix]}\n";

// The texts of a page's cells, row by row.
std::vector<std::vector<std::string>> rows_of(const std::string& html) {
  std::vector<std::vector<std::string>> rows;
  const std::regex cell("<(tr|t[hd][^>]*>([^<]*))");
  for (std::sregex_iterator found(html.begin(), html.end(), cell), end; found != end; ++found) {
    if ((*found)[1] == "tr") {
      rows.emplace_back();
    } else if (!rows.empty()) {
      rows.back().push_back((*found)[2]);
    }
  }
  return rows;
}

}  // namespace

TEST_CASE("a run writes a page with its curves, memory and confusion matrix") {
  const Folder folder;
  folder.write("job.yaml", config);
  const Finished run = trainctl(folder, {"run", "job.yaml", "--ranks", "2", "--quiet"});
  INFO(run.errors);
  REQUIRE(run.code == 0);
  const std::string page = read_file(folder / "runs/reported/report.html");
  using Catch::Matchers::Contains;
  for (const char* part : {"<h3>loss</h3>", "<h3>accuracy</h3>", "<h3>learning rate</h3>", "gradients", "parameters",
                           "Most often confused", "completed", "trainctl predict runs/reported"}) {
    CHECK_THAT(page, Contains(part));
  }

  // The config's name leads to the same page; with --json.
  const Finished again = trainctl(folder, {"report", "job.yaml", "--json"});
  INFO(again.errors);
  REQUIRE(again.code == 0);
  const Json found = Json::parse(again.out);
  CHECK(found["report"] == "runs/reported/report.html");
  CHECK(found["runs"][0]["step"] == 18);
  const Json last = events(folder / "runs/reported", "end").back();
  CHECK(found["runs"][0]["best"] == last["best"]);
  CHECK(read_file(folder / "runs/reported/report.html") == page);
}

TEST_CASE("report --samples shows mistakes with their pictures, and counts as eval does") {
  const Folder folder;
  folder.write("job.yaml", config);
  REQUIRE(trainctl(folder, {"run", "job.yaml", "--quiet"}).code == 0);
  const Finished shown = trainctl(folder, {"report", "runs/reported", "--samples", "2"});
  INFO(shown.errors);
  REQUIRE(shown.code == 0);
  const std::string page = read_file(folder / "runs/reported/report.html");
  std::size_t pictures = 0;
  for (std::size_t at = page.find("data:image/png"); at != std::string::npos;
       at = page.find("data:image/png", at + 1)) {
    ++pictures;
  }
  CHECK(pictures == 2);
  CHECK_THAT(page, Catch::Matchers::Contains("% sure; synthetic sample "));

  // Compares the matrix with that of eval, which counts in another way.
  const Finished eval = trainctl(folder, {"eval", "job.yaml", "--confusion", "--json", "--data", "validation"});
  REQUIRE(eval.code == 0);
  const auto rows = rows_of(page.substr(page.find("<h2>Confusion</h2>")));
  const Json expected = Json::parse(eval.out).at("confusion_matrix");
  REQUIRE(rows.size() > expected.size());
  for (std::size_t row = 0; row < expected.size(); ++row) {
    for (std::size_t column = 0; column < expected.size(); ++column) {
      const std::string& cell = rows[row + 1].at(column + 1);
      CHECK((cell.empty() ? 0 : std::stoi(cell)) == expected[row][column].get<int>());
    }
  }
}

TEST_CASE("report --samples is refused for networks without classes") {
  const Folder folder;
  std::string rows = "a,b,y\n";
  for (int i = 0; i < 40; ++i) {
    rows += std::to_string(i % 7) + "," + std::to_string(i * i % 11) + "," + std::to_string(0.5 * i) + "\n";
  }
  folder.write("table.csv", rows);
  folder.write("job.yaml",
               "name: values\ndata: {dataset: csv, path: table.csv, target: y, validation: {path: table.csv}}\n"
               "model: {layers: [{dense: {units: 4, activation: relu}}, {dense: {units: 1}}]}\n"
               "train: {batch_size: 8, epochs: 1, loss: mse, optimizer: adam}\n");
  const Finished run = trainctl(folder, {"run", "job.yaml", "--ranks", "1", "--quiet"});
  INFO(run.errors);
  REQUIRE(run.code == 0);
  const Finished refused = trainctl(folder, {"report", "runs/values", "--samples", "3"});
  CHECK(refused.code == 2);
  CHECK_THAT(refused.errors, Catch::Matchers::Contains("requires a network that predicts classes"));
}

TEST_CASE("report compares runs, and refuses a folder that is not a run") {
  const Folder folder;
  folder.write("job.yaml", config);
  REQUIRE(trainctl(folder, {"run", "job.yaml", "--quiet", "--run-dir", "one"}).code == 0);
  REQUIRE(trainctl(folder, {"run", "job.yaml", "--quiet", "--run-dir", "two", "--set", "train.epochs=1"}).code == 0);
  const Finished both = trainctl(folder, {"report", "one", "two/"});
  CHECK(both.code == 0);
  CHECK_THAT(both.out, Catch::Matchers::Contains("written to report.html"));
  CHECK_THAT(read_file(folder / "report.html"), Catch::Matchers::Contains("train.epochs"));

  const Finished missing = trainctl(folder, {"report", "one", "three"});
  CHECK(missing.code == 2);
  CHECK_THAT(missing.errors, Catch::Matchers::Contains("three: there is no such directory"));
  const Finished other = trainctl(folder, {"report", folder.path().string()});
  CHECK(other.code == 2);
  CHECK_THAT(other.errors, Catch::Matchers::Contains("this is not a run directory"));
}

}  // namespace trainctl::test::report_test
