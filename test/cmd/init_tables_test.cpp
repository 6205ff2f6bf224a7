// Tests init with tables: the kinds of their columns, and numbers with commas.
#include <random>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/files.h"

namespace trainctl::test::init_tables_test {
namespace {

// Lines of a table whose column `left` depends on two other columns.
std::string table_text(int lines) {
  std::mt19937 random(11);
  std::string text = "customer_id,joined,plan,months,spent,comment,left\n";
  for (int i = 0; i < lines; ++i) {
    const unsigned plan = random() % 3, months = random() % 40, spent = random() % 1000;
    const bool left = (plan == 0 ? 20 : 0) + months < 25;
    text += format("{},2024-0{}-11,{},{},{},\"said, {}\",{}\n", i, 1 + i % 9,
                   std::vector<std::string>{"basic", "\"family, large\"", "student"}[plan], months,
                   i % 10 == 3 ? "" : std::to_string(spent), random(), left ? "yes" : "no");
  }
  return text;
}

double last_accuracy(const std::string& run) {
  return events(run, "epoch").back()["validation"]["accuracy"].get<double>();
}

}  // namespace

TEST_CASE("init distinguishes the columns of a table, and its config learns from them") {
  const Folder folder;
  folder.write("customers.csv", table_text(600));
  const Finished made = trainctl(folder, {"init", "customers.csv"});
  INFO(tail(made.errors));
  REQUIRE(made.code == 0);
  const std::string text = read_file(folder / "customers.yaml");
  INFO(text);
  for (const char* line : {"target: left ", "columns: [plan, months, spent]", "not joined, which holds dates",
                           "not customer_id, which numbers the lines", "not comment, which", "missing: mean",
                           "categorical: [plan, left]", "loss: binary_crossentropy"}) {
    CHECK(contains(text, line));
  }
  const Finished run = trainctl(folder, {"run", "customers.yaml", "--ranks", "1"});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  CHECK(last_accuracy(folder / "runs/customers") > 0.9);

  const Finished other = trainctl(folder, {"init", "customers.csv", "--target", "months", "-o", "regression"});
  INFO(tail(other.errors));
  REQUIRE(other.code == 0);
  CHECK(contains(read_file(folder / "regression/customers.yaml"), "loss: mean_squared_error"));
  CHECK(trainctl(folder, {"run", "regression/customers.yaml", "--ranks", "1", "--set", "train.epochs=1"}).code == 0);
  const Finished gaps = trainctl(folder, {"init", "customers.csv", "--target", "spent", "-o", "gaps"});
  CHECK(gaps.code == 0);
  CHECK(contains(gaps.out, "customers.csv: 60 of 600 lines lack a target and are left out"));
  CHECK(contains(read_file(folder / "gaps/customers.yaml"), "missing_targets: drop"));
  const Finished unknown = trainctl(folder, {"init", "customers.csv", "--target", "price", "-o", "third"});
  CHECK(unknown.code == 2);
  CHECK(contains(unknown.errors, "has no column 'price'; its columns are"));
}

TEST_CASE("init does not treat numbers with decimal commas as words, and shows how to convert them") {
  const Folder folder;
  std::mt19937 random(17);
  std::string semicolons = "size;weight;kind\n", quoted = "size,\"a, b\",kind\n", plain;
  for (int i = 0; i < 60; ++i) {
    const unsigned whole = random() % 3000, part = random() % 100, other = random() % 50;
    const char* kind = whole > 1500 ? "big" : "small";
    semicolons += format("{},{:02};{};{}\n", whole, part, other, kind);
    quoted += format("\"{},{:02}\",{},{}\n", whole, part, other, kind);
    plain += format("{},{:02};{},5;{}\n", whole, part, other, whole > 1500 ? 1 : 0);
  }
  folder.write("semicolons.csv", semicolons);
  folder.write("quoted.csv", quoted);
  folder.write("plain.csv", plain);
  for (const auto& [name, columns] :
       {std::pair{"semicolons", "line 2, column 'size': '"}, std::pair{"quoted", "line 2, column 'size': '"},
        std::pair{"plain", "line 1, column '1': '"}}) {
    const std::string file = format("{}.csv", name);
    const Finished made = trainctl(folder, {"init", file});
    CAPTURE(name, made.errors);
    CHECK(made.code == 3);
    CHECK(contains(made.errors, format("{}: {}", file, columns)));
    CHECK(contains(made.errors, "numbers of this column have a decimal comma"));
    if (std::string(name) == "plain") CHECK(contains(made.errors, "column '2' has such numbers, too"));
    const std::size_t sed = made.errors.find("sed -E");
    REQUIRE(sed != std::string::npos);  // the error contains a command
    const std::string remedy = made.errors.substr(sed, made.errors.find('\n', sed) - sed);
    REQUIRE(std::system(format("cd '{}' && {}", folder.path().string(), remedy).c_str()) == 0);
    const Finished again = trainctl(folder, {"init", format("{}-numbers.csv", name)});
    CAPTURE(again.errors, remedy);
    CHECK(again.code == 0);
    CHECK(contains(again.out, "2 classes"));
  }
  folder.write("run.yaml",
               "data: {dataset: csv, path: quoted.csv, numeric: [size]}\nmodel: {layers: [{dense: 1}]}\n"
               "train: {batch_size: 8, epochs: 1, loss: mean_squared_error, optimizer: sgd}\n");
  const Finished run = trainctl(folder, {"run", "run.yaml", "--ranks", "1"});
  CHECK(run.code == 3);
  CHECK(contains(run.errors, "is not a number: it has a decimal comma"));
  CHECK(contains(run.errors, "> quoted-numbers.csv"));
}

TEST_CASE("init asks what a comma before three digits means, and shows how to remove or replace it") {
  const Folder folder;
  std::mt19937 random(18);
  std::string prices = "price,kind\n";
  for (int i = 0; i < 60; ++i) {
    const unsigned thousands = 1 + random() % 90, rest = random() % 1000;
    prices += format("\"{},{:03}\",{}\n", thousands, rest, thousands > 45 ? "dear" : "cheap");
  }
  folder.write("prices.csv", prices);
  const Finished made = trainctl(folder, {"init", "prices.csv"});
  CAPTURE(made.errors);
  CHECK(made.code == 3);
  const std::size_t removed = made.errors.find("if the commas separate thousands, remove them: sed -E");
  REQUIRE(removed != std::string::npos);
  CHECK(contains(made.errors, "if they are decimal commas, replace them by points: sed -E"));
  const std::size_t sed = made.errors.find("sed -E", removed), end = made.errors.find("prices-numbers.csv", sed);
  const std::string remedy = made.errors.substr(sed, end - sed) + "whole.csv";
  REQUIRE(std::system(format("cd '{}' && {}", folder.path().string(), remedy).c_str()) == 0);
  CHECK(read_file(folder / "whole.csv").find(',') == 5);  // of the header
  const std::string first = prices.substr(prices.find('"') + 1, prices.find("\",") - prices.find('"') - 1);
  CHECK(contains(read_file(folder / "whole.csv"),
                 "\n\"" + first.substr(0, first.find(',')) + first.substr(first.find(',') + 1) + "\","));
  CHECK(trainctl(folder, {"init", "whole.csv"}).code == 0);
}

}  // namespace trainctl::test::init_tables_test
