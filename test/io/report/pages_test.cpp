// Tests the pages of runs: charts, comparisons, text that must be escaped, and runs that failed.
#include <cmath>
#include <random>

#include "io/checkpoint/atomic_file.h"
#include "io/report/chart.h"
#include "io/report/confusion.h"
#include "io/report/html.h"
#include "io/report/run_report.h"
#include "test/catch.h"
#include "test/support/snapshots.h"

namespace trainctl::test::pages_test {
namespace {

using Catch::Matchers::Contains;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Makes a run directory whose run monitors val_loss. `losses` are the losses of its epochs. Returns its path.
std::string make_run(const TemporaryFolder& folder, const std::string& name, const std::vector<std::string>& losses,
                     const std::string& config = "name: x\ntrain: {epochs: 3}\n", const std::string& status = "") {
  const std::string run = folder / name;
  std::string lines =
      R"({"event":"start","time":1,"version":"1","seed":7,"ranks":1,"mesh":[1,1,1],"hosts":["<b>"],"device":"CPU",)"
      R"("parameters":10,"resumed_from":null,"steps_per_epoch":10,"total_steps":30,"first_step":0,"monitor":{"name":"val_loss","mode":"min"}})"
      "\n";
  int epoch = 0;
  for (const std::string& loss : losses) {
    ++epoch;
    lines += R"({"event":"step","time":2,"step":)" + std::to_string(10 * epoch) + R"(,"epoch":)" +
             std::to_string(epoch) + R"(,"loss":)" + loss +
             R"(,"learning_rate":0.1,"samples_per_second":5,"gradient_norm":2,"data_wait_share":0.125,)" +
             R"("time_shares":{"forward":0.25,"backward":0.5,"communication":0.0625}})" + "\n";
    lines += R"({"event":"epoch","time":2,"epoch":)" + std::to_string(epoch) + R"(,"step":)" +
             std::to_string(10 * epoch) + R"(,"train":{"loss":)" + loss + R"(},"validation":{"loss":)" + loss +
             R"(,"confusion_matrix":[[5,2],[1,9]]},"seconds":1})" + "\n";
  }
  if (!status.empty()) {
    lines += R"({"event":"end","time":3,"status":")" + status +
             R"(","step":30,"epoch":3,"best":null,"train":{},"validation":{},)" +
             R"("weights_sha256":"","seconds":3})" + "\n";
  }
  create_folders(run);
  write_file(run + "/metrics.jsonl", lines);
  write_file(run + "/config.yaml", config);
  return run;
}

}  // namespace

TEST_CASE("ticks are round, few, and span the values") {
  CHECK(ticks(0, 1, 5) == std::vector<double>{0, 0.2, 0.4, 0.6000000000000001, 0.8, 1});
  std::mt19937 generator(5);
  for (int i = 0; i < 200; ++i) {
    const double low = std::normal_distribution<>(0, 100)(generator);
    const double high = low + std::pow(10, std::uniform_real_distribution<>(-4, 5)(generator));
    const std::vector<double> found = ticks(low, high, 5);
    CAPTURE(low, high);
    CHECK(found.front() <= low + 1e-9 * std::abs(low));
    CHECK(found.back() >= high - 1e-9 * std::abs(high));
    CHECK(found.size() >= 3);
    CHECK(found.size() <= 8);
  }
}

TEST_CASE("a chart has a line for each part of a curve between NaNs, and keeps the peaks of long curves") {
  CHECK(to_html({"nothing", "x", {{"a", {}, 0, false}, {"b", {{1, NAN}}, 1, false}}}).empty());
  const std::string gap = to_html({"t", "x", {{"a", {{1, 1}, {2, 2}, {3, NAN}, {4, 1}, {5, 3}}, 3, true}}});
  CHECK(count_of(gap, "<polyline") == 2);
  CHECK(count_of(gap, "<circle") == 4);
  CHECK_THAT(gap, Contains("var(--c3)"));

  std::vector<CurvePoint> many;
  for (int i = 0; i < 20000; ++i) many.push_back({i / 100.0, i == 12345 ? 9.0 : 1.0 + (i % 7) / 10.0});
  const std::string drawn = to_html({"t", "x", {{"a", many, 0, false}}});
  CHECK(drawn.size() < 20000);
  CHECK_THAT(drawn, Contains(",27.6"));  // the value 9 on an axis from 0 (at y = 186) to 10 (at y = 10)
}

TEST_CASE("the confusion matrix shows counts, names and the pairs that are confused most often") {
  const std::string text = confusion_of({{5, 2, 0}, {0, 9, 1}, {4, 0, 6}}, {"cat", "dog & co", "owl"});
  CHECK_THAT(text, Contains("dog &amp; co"));
  CHECK_THAT(text, Contains("71.4 %"));
  CHECK(text.rfind("<td>owl</td><td>cat</td>") < text.rfind("<td>cat</td><td>dog &amp; co</td>"));
  CHECK_THAT(confusion_of({{5, 0}, {0, 9}}, {}), Contains("No sample was misclassified"));
}

TEST_CASE("a page of a run shows its curves, results and config, and escapes text from files") {
  const TemporaryFolder folder;
  const std::string run =
      make_run(folder, "a", {"0.9", "0.25", "0.5"}, "name: \"<script>\"\ntrain: {epochs: 3}\n", "completed");
  write_file(run + "/log.txt",
             "2026-01-01 00:00:00.000 I all is well\n2026-01-01 00:00:00.000 W the <disk> is slow\nbroken\n");
  const std::string page = run_page(load_run_report(run));
  CHECK_THAT(page, Contains("best val_loss"));
  CHECK_THAT(page, Contains("<b>0.25</b>"));
  CHECK_THAT(page, Contains("at step 20"));
  CHECK_THAT(page, Contains("the &lt;disk&gt; is slow"));
  CHECK_THAT(page, !Contains("all is well"));
  CHECK_THAT(page, Contains("&lt;script&gt;"));
  CHECK_THAT(page, !Contains("<script"));
  CHECK_THAT(page, !Contains("http://"));
  CHECK_THAT(page, !Contains("https://"));
  CHECK(count_of(page, "<polyline") >= 4);
  const std::string shares = page.substr(page.find("Where a step's time went"));
  for (const char* share : {"25.0 %", "50.0 %", "6.2 %", "12.5 %"}) CHECK_THAT(shares, Contains(share));
  CHECK_THAT(shares, !Contains("update of the weights"));
}

TEST_CASE("a run's page tells whether the run diverged, was killed or has no epoch") {
  const TemporaryFolder folder;
  const std::string diverged =
      run_page(load_run_report(make_run(folder, "d", {"0.9", "\"NaN\""}, "name: d\n", "diverged")));
  CHECK_THAT(diverged, Contains("the loss was no longer finite"));
  CHECK_THAT(diverged, Contains("at step 10"));
  const std::string killed = run_page(load_run_report(make_run(folder, "k", {"0.9"})));
  CHECK_THAT(killed, Contains("there is no end event"));
  CHECK_THAT(killed, Contains("--run-dir"));
  const std::string none = run_page(load_run_report(make_run(folder, "n", {})));
  CHECK_THAT(none, Contains("No epoch has ended"));

  CHECK_THROWS_WITH(load_run_report(folder / "missing"), Contains("there is no such directory"));
  create_folders(folder / "half");
  write_file(folder / "half/config.yaml", "name: x\n");
  CHECK_THROWS_WITH(load_run_report(folder / "half"), Contains("has not begun to train"));
}

TEST_CASE("several runs are compared, with the best first and the differences of their configs") {
  const TemporaryFolder folder;
  std::vector<RunReport> runs;
  runs.push_back(load_run_report(
      make_run(folder, "slow", {"0.9", "0.8"}, "name: a\ntrain: {epochs: 3, optimizer: {sgd: {momentum: 0.9}}}\n")));
  runs.push_back(load_run_report(make_run(folder, "none", {})));
  runs.push_back(load_run_report(
      make_run(folder, "fast/", {"0.4", "0.6"}, "name: b\nseed: 3\ntrain: {epochs: 3, optimizer: adam}\n")));
  CHECK(best_first(runs) == std::vector<std::size_t>{2, 0, 1});
  CHECK(runs[2].name() == "fast");
  std::map<std::string, std::vector<std::string>> found;
  for (const ConfigDifference& difference : config_differences({runs[0], runs[2]})) {
    found[difference.key] = difference.values;
  }
  CHECK(found == std::map<std::string, std::vector<std::string>>{
                     {"seed", {"", "3"}}, {"train.optimizer", {"{sgd: {momentum: 0.9}}", "adam"}}});
  const std::string page = comparison_page(runs);
  CHECK(page.find(">fast</td>") < page.find(">slow</td>"));
  CHECK_THAT(page, Contains("loss, validation"));
  CHECK_THAT(page, Contains("train.optimizer"));
}

TEST_CASE("layers are compared one by one, also if a layer was inserted, and a run's time is the sum over its starts") {
  const TemporaryFolder folder;
  const std::string begin = "model: {layers: [{conv2d: {filters: 8, kernel_size: [3, 3]}}, ";
  const std::string end = "flatten, {dense: {units: 10, activation: softmax}}]}\n";
  std::vector<RunReport> runs;
  for (const char* middle : {"", "{dropout: {rate: 0.2}}, {max_pooling2d: {pool_size: 2}}, "}) {
    const std::string name = "run" + std::to_string(runs.size());
    runs.push_back(load_run_report(make_run(folder, name, {"0.9"}, begin + middle + end)));
  }
  runs.push_back(load_run_report(make_run(folder, "units", {"0.9"},
                                          "model: {layers: [{conv2d: {filters: 9, kernel_size: [5, 5]}}, "
                                          "flatten, {dense: {units: 10, activation: softmax}}]}\n")));
  const std::vector<ConfigDifference> inserted = config_differences({runs[0], runs[1]});
  REQUIRE(inserted.size() == 2);
  CHECK(inserted[0].key == "model.layers[1]");
  CHECK(inserted[0].values == std::vector<std::string>{"", "{dropout: {rate: 0.2}}"});
  CHECK(inserted[1].values == std::vector<std::string>{"", "{max_pooling2d: {pool_size: 2}}"});
  const std::vector<ConfigDifference> changed = config_differences({runs[0], runs[2]});
  REQUIRE(changed.size() == 2);
  CHECK(changed[0].key == "model.layers[0].conv2d.filters");
  CHECK(changed[0].values == std::vector<std::string>{"8", "9"});
  CHECK(changed[1].values == std::vector<std::string>{"[3, 3]", "[5, 5]"});

  // Two starts of 5 and 7 seconds, with a pause of a minute between them.
  RunHistory history;
  history.starts = {{{}, 100, 105}, {{}, 165, 172}};
  CHECK(history.seconds() == 12);
}

}  // namespace trainctl::test::pages_test
