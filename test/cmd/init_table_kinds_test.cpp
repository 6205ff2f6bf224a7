// Tests init with unusual tables: what it assumes and tells, and the commands that its errors show.
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/cmd/init_cases.h"
#include "test/support/command.h"

namespace trainctl::test::init_table_kinds_test {

namespace fs = std::filesystem;
using namespace init_cases;

TEST_CASE("init tells what it assumed about the lines and columns of a table") {
  const auto value = [](int i, int k) { return (i * 37 + k * 11) % 100 + 3; };
  check_cases({
      {"years.csv",
       table("years.csv", "2001,2002,2003,target",
             [&](int i) { return format("{},{},{},{}", value(i, 1), value(i, 2), value(i, 3), value(i, 4) * 1.5); }),
       true,
       {"header: true", "is taken for names of columns; if it is a sample, set `header: false`", "target: target"}},
      {"pandas.csv",
       table("pandas.csv", ",0,1,2,3",
             [&](int i) { return format("{},{},{},{},{}.5", i, value(i, 1), value(i, 2), value(i, 3), i % 9); }),
       true,
       {"header: true", "is taken for names of columns", "target: 3"}},
      {"kinds.csv",
       table("kinds.csv", "2019,2020,2021,name",
             [&](int i) { return format("{},{},{},{}", value(i, 1), value(i, 2), value(i, 3), i % 2 ? "a" : "b"); }),
       true,
       {"header: true", "is taken for names of columns", "target: name"}},
      {"sampled.csv",
       table("sampled.csv", "19,20,21,a",
             [&](int i) { return format("{},{},{},{}", value(i, 1), value(i, 2), value(i, 3), i % 2 ? "a" : "b"); }),
       true,
       {"header: false", "is taken for a sample"}},
      {"plain.csv",
       table("plain.csv", "", [&](int i) { return format("{},{},{}.5", value(i, 1), value(i, 2), value(i, 3)); }),
       true,
       {"header: false", "is taken for a sample; if it names the columns, set `header: true`"}},
      {"index.csv",
       table("index.csv", ",size,price", [&](int i) { return format("{},{},{}.5", i, value(i, 1), value(i, 2)); }),
       true,
       {"columns: [size]", "the column without a name is not read: it numbers the lines"}},
      {"again.csv",
       table("again.csv", "Unnamed: 0,size,price",
             [&](int i) { return format("{},{},{}.5", i + 7, value(i, 1), value(i, 2)); }),
       true,
       {"columns: [size]", "Unnamed: 0 is not read: it numbers the lines"}},
      {"passengers.csv",
       table("passengers.csv", "PassengerId,RowNumber,size,price",
             [&](int i) { return format("{},{},{},{}.5", 900 - i, i + 1, value(i, 1), value(i, 2)); }),
       true,
       {"columns: [size]", "not PassengerId, which numbers the lines", "not RowNumber, which numbers the lines"}},
      {"customers.csv",
       [](const Folder& folder) {  // more different ids than are kept
         std::string text = "CustomerId,VisitorId,size,price\n";
         for (int i = 0; i < 1500; ++i) text += format("{},{},{},{}.5\n", 90000 - 7 * i, i % 1200, i % 90, i % 37);
         folder.write("customers.csv", text);
       },
       true,
       {"columns: [VisitorId, size]", "not CustomerId, which numbers the lines"}},
      {"quoted.csv",
       table("quoted.csv", "share,loss,size,price",
             [&](int i) { return format("'0.{}',({}.5),{},{}.5", i % 7, i % 9, value(i, 1), value(i, 2)); }),
       true,
       {"column 'share' holds words such as '0.0': to use its numbers, write them in decimal digits without quotes",
        "column 'loss' holds words such as (0.5): to use its numbers"}},
      {"users.csv",
       table("users.csv", "userId,number,price",
             [&](int i) { return format("{},{},{}.5", i % 7, value(i, 1), value(i, 2)); }),
       true,
       {"three dense layers on 2 values of a line"}},
      {"commas.csv",
       table("commas.csv", "size,kind,", [&](int i) { return format("{},{},", value(i, 1), i % 2 ? "a" : "b"); }),
       true,
       {"target: kind", "not the column without a name, which is empty"}},
      {"comma3.csv",
       table("comma3.csv", "size,kind,,,", [&](int i) { return format("{},{},,,", value(i, 1), i % 2 ? "a" : "b"); }),
       true,
       {"target: kind", "columns: [size]"}},
      {"gaps.csv",
       table("gaps.csv", "age,price",
             [&](int i) { return format("{},{}.5", i == 8 ? "NA" : std::to_string(value(i, 1)), value(i, 2)); }),
       true,
       {"missing: mean", "column 'age' has no number in 1 line (the first: 'NA' in line 10)"}},
      {"children.csv",
       table("children.csv", "children,price",
             [&](int i) { return format("{},{}.5", i % 4 == 3 ? "3+" : std::to_string(i % 4), value(i, 2)); }),
       true,
       {"categorical: [children]", "column 'children' is read as words: 45 fields are numbers, but '3+' in line 5"}},
      {"DATA.CSV",
       table("DATA.CSV", "a,b", [&](int i) { return format("{},{}.5", value(i, 1), value(i, 2)); }),
       true,
       {"target: b"}},
      {"Folder",
       [&](const Folder& folder) {
         const auto line = [&](int i) { return format("{},{}.5", value(i, 1), value(i, 2)); };
         table("Folder/TRAIN.CSV", "a,b", line)(folder);
         table("Folder/Val.csv", "a,b", line)(folder);
       },
       true,
       {"path: Folder/TRAIN.CSV", "validation: {path: Folder/Val.csv}"}},
      {"same.csv",
       table("same.csv", "a,b", [&](int i) { return format("{},7", value(i, 1)); }),
       false,
       {"its column 'b' is the same in all lines, and cannot be the target"}},
      {"huge.csv",
       table("huge.csv", "a,b", [&](int i) { return format("{},{}e30", value(i, 1), i + 1); }),
       false,
       {"its column 'b' has values up to 6.0e+31, whose squared errors are too large"}},
      {"single.csv",
       table("single.csv", "b", [](int i) { return std::to_string(i); }),
       false,
       {"has no column that a network could learn from besides the target"}},
      {"dotted.csv",
       table("dotted.csv", "a,b", [&](int i) { return format("{}.{:03},{}.25", i + 1, value(i, 3), value(i, 2)); }),
       true,
       {"'1.036' in line 2, column 'a', is read with a decimal point; if points separate thousands, remove them\n"}},
      {"pointed.csv",
       table("pointed.csv", "a,b", [&](int i) { return format("{}.{:03},{}", i + 1, value(i, 3), value(i, 2)); }),
       true,
       {"if points separate thousands, remove them: sed -E"}},
  });
}

TEST_CASE("init leaves out columns of no use whose words it would refuse elsewhere, and says so") {
  const auto line = [](const std::string& first, int i) { return format("{},{},{}.5", first, i * 13 % 97, i % 7); };
  const auto with = [&](const std::string& name, const std::function<std::string(int i)>& first) {
    return table(name + ".csv", name + ",size,price", [=](int i) { return line(first(i), i); });
  };
  const auto invoices = [&](const Folder& folder) {
    std::string text = "invoice,size,price\n";
    for (int i = 0; i < 300; ++i) text += line((i % 50 == 49 ? "C" : "") + std::to_string(536000 + i), i) + "\n";
    folder.write("invoice.csv", text);
  };
  check_cases({
      {"id.csv",
       with("id", [](int i) { return i % 30 == 7 ? "x" : std::to_string(i); }),
       true,
       {"columns: [size]", "id is not read: it"}},
      {"user_id.csv", with("user_id", [](int i) { return format("${}", i); }), true, {"columns: [size]"}},
      {"day.csv",
       with("day",
            [](int i) {
              return i == 9 ? "x" : i % 4 == 3 ? format("2024-01-{:02}", i % 28 + 1) : std::to_string(i * 13 % 97);
            }),
       true,
       {"columns: [size]", "day is not read: it holds dates"}},
      {"same.csv",
       with("same", [](int) { return "$5"; }),
       true,
       {"columns: [size]", "same is not read: it is the same"}},
      {"invoice.csv", invoices, true, {"columns: [size]", "invoice is not read: it holds more than 100 different"}},
  });
}

TEST_CASE("init writes a text classifier for a table of texts and classes") {
  check_cases({
      {"reviews.csv",
       table("reviews.csv", "id,review,sentiment",
             [](int i) { return format("{},\"{}, yes\",{}", i, sentence(i), i % 2 == 0 ? "good" : "bad"); }),
       true,
       {"text_classification", "text_column: review", "class_column: sentiment"}},
      {"spam.csv",
       table("spam.csv", "v1,v2", [](int i) { return format("{},{}", i % 2 == 0 ? "ham" : "spam", sentence(i)); }),
       true,
       {"text_column: v2", "class_column: v1"}},
      {"texts.tsv",
       table("texts.tsv", "text\tlabel", [](int i) { return format("{}\t{}", sentence(i), i % 2); }),
       false,
       {"its column 'text' holds texts, which are read from .csv files with commas"}},
      {"rated.csv",
       table("rated.csv", "stars,review,kind",
             [](int i) { return format("{},{},{}", i % 5, sentence(i), i % 2 == 0 ? "good" : "bad"); }),
       true,
       {"dataset: csv", "the texts of column 'review' are not read"}},
  });
}

TEST_CASE("init names the line and the value of words among numbers, and of targets that are missing") {
  const auto with = [](const std::string& field) {
    return [field](int i) { return format("{},{}.5", i == 20 ? field : std::to_string(i * 13 % 97), i % 7); };
  };
  const auto target = [](const std::string& field) {
    return [field](int i) { return format("{},{}", i * 13 % 97, i == 20 ? field : format("{}.5", i)); };
  };
  check_cases({
      {"word.csv",
       table("word.csv", "age,price", with("abc")),
       false,
       {"word.csv: line 22, column 'age': 'abc' is not a number, but 59 fields of the column are", "leave it empty"}},
      {"comma.csv",
       [](const Folder& folder) {  // a target with more than 100 different numbers
         std::string text = "age;price\n";
         for (int i = 0; i < 120; ++i) text += format("{};{},25\n", i * 13 % 97, i);
         folder.write("comma.csv", text);
       },
       false,
       {"line 2, column 'price': '0,25' is not a number: numbers of this column have", "sed -E"}},
      {"empty.csv",
       table("empty.csv", "age,price", [](int i) { return format("{},", i * 13 % 97); }),
       false,
       {"its column 'price' is empty, and cannot be the target"}},
      {"odd.csv",
       table("odd.csv", "age,price", target("abc")),
       false,
       {"line 22, column 'price': 'abc' is not a number"}},
      {"spelled.csv",
       table("spelled.csv", "age,kind",
             [](int i) { return format("{},{}", i * 13 % 97, i == 20 ? "1.0" : std::to_string(i % 2)); }),
       false,
       {"line 22, column 'kind': the classes '1.0' and '1' (line 3) are the same number"}},
  });
}

TEST_CASE("init leaves out the lines of a table without a target, and says so") {
  const auto price = [](const std::string& gap) {
    return [gap](int i) { return format("{},{}", i * 13 % 97, i % 20 == 7 ? gap : format("{}.5", i)); };
  };
  const auto kind = [](int i) { return format("{},{}", i * 13 % 97, i == 20 ? "" : i % 2 == 0 ? "yes" : "no"); };
  check_cases({
      {"gap.csv",
       table("gap.csv", "age,price", price("NA")),
       true,
       {"missing_targets: drop           # leaves out lines without a target", "target: price", "mean_squared_error",
        "gap.csv: 3 of 60 lines lack a target and are left out (the first: line 9, column 'price')"}},
      {"none.csv", table("none.csv", "age,price", price("")), true, {"left out (the first: line 9, column 'price')"}},
      {"kind.csv",
       table("kind.csv", "age,kind", kind),
       true,
       {"missing_targets: drop", "categorical: [kind]", "1 of 60 lines lacks a target and is left out"}},
      {"texts.csv",
       table("texts.csv", "text,kind",
             [](int i) { return sentence(i) + (i == 20      ? ","
                                               : i % 2 == 0 ? ",good"
                                                            : ",bad"); }),
       false,
       {"its column 'kind' is empty in 1 line (the first: line 22), and cannot be the target of texts",
        "sed 22d texts.csv > texts-complete.csv"}},
  });
}

TEST_CASE("init counts numbers by their values, and takes codes with leading zeros for words") {
  check_cases({
      // Two values in six spellings are two classes, and not six.
      {"spelt.csv",
       table("spelt.csv", "age,kind",
             [](int i) {
               const char* spellings[] = {"0.5", "1.10", "0.50", "1.1", "5e-1", "1.100"};
               return format("{},{}", i * 13 % 97, spellings[i % 6]);
             }),
       true,
       {"mean_squared_error", "a number"}},
      {"ones.csv",
       table("ones.csv", "same,age,price",
             [](int i) { return format("{},{},{}.5", i % 2 == 0 ? "1.1" : "1.10", i * 13 % 97, i); }),
       true,
       {"not same, which is the same in all lines"}},
      {"zip.csv",
       table("zip.csv", "zip,age,price",
             [](int i) { return format("{:05},{},{}.5", 1234 + 9000 * (i % 5), i * 13 % 97, i); }),
       true,
       {"categorical: [zip]", "column 'zip' is read as words: '01234' in line 2 has a leading zero, like a code"}},
      {"zips.csv",
       table("zips.csv", "zip,age,price",
             [](int i) { return format("{:05},{},{}.5", 1234 + 900 * i, i * 13 % 97, i); }),
       true,
       {"not zip, which differs in every line", "zip is not read"}},
      {"codes.csv",
       table("codes.csv", "age,code",
             [](int i) {
               return format("{},{}", i * 13 % 97, i % 3 == 0 ? "1" : i % 3 == 1 ? "01" : "001");
             }),
       true,
       {"categorical: [code]", "3 classes (001, 01, 1)"}},
      {"decimals.csv",
       table("decimals.csv", "level,price", [](int i) { return format("0{}.25,{}.5", i % 30, i); }),
       true,
       {"1 value"}},
  });
}

TEST_CASE("init shows no command that would change the numbers of other columns") {
  struct Table {
    std::string path, head;
    std::function<std::string(int i)> line;
    std::vector<std::string> words;
    bool accepted = false;
  };
  const std::string by_hand = "write the numbers of this column with a decimal point and without other marks";
  const std::vector<Table> tables{
      {"points.csv",
       "a,b,y",
       [](int i) { return format("{}.0{:02}.000,0.{:03},{}", i + 1, i, i * 7 % 1000, i % 2); },
       {"'1.000.000' is not a number: numbers of this column have points between thousands", by_hand}},
      {"commas.csv",
       "a,b,y",
       [](int i) { return format("\"{},0{:02}\",\"{},50\",{}", i + 1, i, i * 7 % 50, i % 2); },
       {"column 'a': '1,000' is not a number: numbers of this column have a comma",
        "column 'b': '0,50' is not a number: numbers of this column have a decimal comma", by_hand}},
      {"dollars.csv",
       "a,b,y",
       [](int i) { return format("\"${},0{:02}.50\",\"{},50\",{}", i + 1, i, i * 7 % 50, i % 2); },
       {"have a currency sign and commas between thousands", "have a decimal comma", by_hand}},
      {"doubtful.csv",
       "a,b,y",
       [](int i) { return format("{}.0{:02},0.{:02},{}", i + 1, i, i * 7 % 100, i % 2); },
       {"'1.000' in line 2, column 'a', is read with a decimal point"},
       true}};
  for (const Table& one : tables) {
    CAPTURE(one.path);
    const Folder folder;
    table(one.path, one.head, one.line)(folder);
    const Finished made = trainctl(folder, {"init", one.path});
    CAPTURE(made.out, made.errors);
    CHECK(made.code == (one.accepted ? 0 : 3));
    for (const std::string& word : one.words) CHECK(contains(made.out + made.errors, word));
    CHECK_FALSE(contains(made.out + made.errors, "sed "));
  }
}

TEST_CASE("the commands in errors about tables remove what cannot be read") {
  const auto kind = [](int i) { return i % 2 == 0 ? "big" : "small"; };
  struct Table {
    std::string path, head;
    std::function<std::string(int i)> line;
    std::string word;       // of the error
    std::string corrected;  // the line of sample 3 after the command
  };
  const std::vector<Table> tables{
      {"a currency.csv", "price,kind", [&](int i) { return format("${}.50,{}", i + 1, kind(i)); },
       "'$1.50' is not a number: numbers of this column have a currency sign", "4.50,small"},
      {"euro's.csv", "price,kind", [&](int i) { return format("{}.50 €,{}", i + 1, kind(i)); }, "a currency sign",
       "4.50,small"},
      {"percent.csv", "share,kind", [&](int i) { return format("{}%,{}", i + 1, kind(i)); }, "a percent sign",
       "4,small"},
      {"spaces.csv", "price,kind", [&](int i) { return format("{} 0{:02} 500,{}", i + 1, i, kind(i)); },
       "spaces or apostrophes between thousands", "4003500,small"},
      {"points.csv", "price;kind", [&](int i) { return format("{}.0{:02},5;{}", i + 1, i, kind(i)); },
       "points between thousands and a decimal comma", "4003.5;small"},
      {"millions.csv", "price,kind", [&](int i) { return format("\"${},0{:02},500.25\",{}", i + 1, i, kind(i)); },
       "a currency sign and commas between thousands", "\"4003500.25\",small"},
      {"decimal.csv", "price,kind", [&](int i) { return format("\"{},5\",{}", i + 1, kind(i)); }, "a decimal comma",
       "\"4.5\",small"},
  };
  for (const Table& one : tables) {
    CAPTURE(one.path);
    const Folder folder;
    table(one.path, one.head, one.line)(folder);
    const Finished made = trainctl(folder, {"init", one.path});
    CAPTURE(made.out, made.errors);
    CHECK(made.code == 3);
    CHECK(contains(made.errors, format("{}: line 2, column '", one.path)));
    CHECK(contains(made.errors, one.word));
    const std::size_t sed = made.errors.find("sed -E");
    REQUIRE(sed != std::string::npos);
    const std::string command = made.errors.substr(sed, made.errors.find('\n', sed) - sed);
    REQUIRE(std::system(format("cd \"{}\" && {}", folder.path().string(), command).c_str()) == 0);
    const std::string copy = fs::path(one.path).stem().string() + "-numbers.csv", text = read_file(folder / copy);
    CAPTURE(command, text);
    CHECK(contains(text, "\n" + one.corrected + "\n"));
    const Finished again = trainctl(folder, {"init", copy, "--out", "a b"});
    CHECK(again.code == 0);
    CHECK(contains(again.out, "then trainctl run 'a b/"));
  }
}

}  // namespace trainctl::test::init_table_kinds_test
