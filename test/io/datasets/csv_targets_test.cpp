// Tests tables with a target for each output of a network.
#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/files.h"

namespace trainctl::test::csv_targets_test {
namespace {

const DataUse use{{{""}}, {{"kind"}, {"price", true}, {"place", true}}, {}};
const std::string table =
    "a,kind,b,price,x,y,w\n1,cat,2,2.5,1,10,1\n3,dog,4,7,2,20,2\n5,cat,6,-1,3,30,0\n7,emu,8,4,4,40,1\n";
const std::string keys = "targets: {kind: kind, price: price, place: [y, x]}, weight: w, workers: 0";

// The error of opening a table, or "it was read".
std::string error_of(const std::string& text, const std::string& data, const DataUse& with = use) {
  const TempFolder folder;
  write_file(folder / "t.csv", text);
  try {
    Data(data_options(format("{{dataset: csv, path: {}, {}}}", folder / "t.csv", data)), 1, with);
  } catch (const Error& error) {
    return error.what();
  }
  return "it was read";
}

void says(const std::string& message, const std::string& text) {
  CAPTURE(message);
  CHECK(message.find(text) != std::string::npos);
}

}  // namespace

TEST_CASE("csv: each output has its own target") {
  const TempFolder folder;
  write_file(folder / "t.csv", table);
  write_file(folder / "v.csv", "w,kind,price,y,x,b,a\n1,emu,3,2,1,6,5\n");
  const Data data(data_options(format("{{dataset: csv, path: {}, validation: {{path: {}}}, {}}}", folder / "t.csv",
                                      folder / "v.csv", keys)),
                  1, use);
  const DataInfo& info = data.info();
  CHECK(info.inputs[0].sample == Shape{2});
  REQUIRE(info.targets.size() == 3);
  CHECK(info.targets[0].classes == 3);
  CHECK(info.targets[1].classes == 0);
  CHECK(info.targets[1].shape == Shape{1});
  CHECK(info.targets[2].shape == Shape{2});
  const auto source = data.training(4, {}, {1, 0, 0});
  const Batch& batch = source->next();
  REQUIRE(batch.count == 4);
  for (std::int64_t i = 0; i < 4; ++i) {
    const float* x = batch.inputs[0].as<float>() + 2 * i;
    const auto line = static_cast<std::int64_t>(x[0] - 1) / 2;
    CHECK(x[1] == x[0] + 1);
    const std::int32_t classes[] = {0, 1, 0, 2};
    const float prices[] = {2.5f, 7, -1, 4}, weights[] = {1, 2, 0, 1};
    CHECK(batch.targets[0].as<std::int32_t>()[i] == classes[line]);
    CHECK(batch.targets[1].as<float>()[i] == prices[line]);
    CHECK(batch.targets[2].as<float>()[2 * i] == static_cast<float>(10 * (line + 1)));
    CHECK(batch.targets[2].as<float>()[2 * i + 1] == static_cast<float>(line + 1));
    CHECK(batch.weights.as<float>()[i] == weights[line]);
  }
  const auto held_out = data.evaluation(SplitKind::validation, 1, {}, 1);
  const Batch& one = held_out->next();
  CHECK(one.inputs[0].as<float>()[0] == 5);
  CHECK(one.targets[0].as<std::int32_t>()[0] == 2);
  CHECK(one.targets[1].as<float>()[0] == 3);
  CHECK(one.targets[2].as<float>()[0] == 2);
}

TEST_CASE("csv: classes may be in any output, and an output without a loss needs no column") {
  const DataUse other{{{""}}, {{"price", true}, {"free", true}, {"kind"}}, {}};
  DataUse unused = other;
  unused.targets[1].unused = true;
  says(error_of(table, "targets: {price: price, kind: kind}", other),
       "`targets` names no column for the output 'free'");
  CHECK(error_of(table, "targets: {price: price, kind: kind}", unused) == "it was read");
  says(error_of(table, "targets: {price: kind, kind: kind}", unused), "is not a number");

  // The weights are those of the lines, also if the first output needs no target.
  const TempFolder folder;
  write_file(folder / "t.csv", table);
  DataUse first = other;
  first.targets[0].unused = true;
  const Data data(data_options(format("{{dataset: csv, path: {}, columns: [a], targets: {{free: price, kind: kind}}, "
                                      "weight: w, workers: 0}}",
                                      folder / "t.csv")),
                  1, first);
  const auto source = data.training(4, {}, {1, 0, 0});
  const Batch& batch = source->next();
  for (std::int64_t i = 0; i < 4; ++i) {
    const float weights[] = {1, 2, 0, 1};
    CHECK(batch.weights.as<float>()[i] == weights[static_cast<std::int64_t>(batch.inputs[0].as<float>()[i] - 1) / 2]);
  }
}

TEST_CASE("csv: mistakes in targets are reported") {
  says(error_of(table, "targets: {kind: kinds, price: price, place: x}"), "has no column 'kinds'");
  says(error_of(table, "target: kind"), "csv supports only one");
  says(error_of(table, "columns: [a, price], targets: {kind: kind, price: price, place: x}"), "column 'price' of");
  const auto reported = [](const std::string& data) {
    Reader reader;
    DataOptions options;
    const Node node = parse_yaml("{dataset: csv, path: t.csv, " + data + "}", "t.yaml", "", reader);
    section_of<DataOptions>().read(node, reader, &options);
    std::string text;
    for (const Diagnostic& diagnostic : reader.diagnostics()) text += to_string(diagnostic) + "\n";
    return text;
  };
  const auto of_one_output = [](const std::string& key) {
    Reader reader;
    const auto options = data_options("{dataset: csv, path: t.csv, " + key + "}");
    options.check_names_of({""}, {""}, {true}, reader);
    return to_string(reader.diagnostics().at(0));
  };
  says(of_one_output("targets: {kind: kind}"), "the model has one output: use `target` instead of `targets`");
  says(of_one_output("inputs: {a: [a]}"), "the model has one input: use `columns` instead of `inputs`");
  says(reported("targets: kind"), "targets must name the columns of each output of the model");
  says(reported("target: a, targets: {kind: kind}"), "leave `target` out");
  says(reported("windows: {sequence_length: 3}, targets: {kind: kind}"), "windows of a series have one target");
}

}  // namespace trainctl::test::csv_targets_test
