// Tests the data set of images with texts: tables and folders, the numbers of characters, and what is refused.
#include "io/datasets/options.h"
#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/files.h"

namespace trainctl::test::image_text_test {
namespace {

std::shared_ptr<const Dataset> open(const std::string& path, const DeclaredInfo& declared = {},
                                    const std::string& length = "") {
  Node node = map_node();
  append(node, "name", scalar_node("image_text"));
  if (!length.empty()) append(node, "length", scalar_node(length));
  Reader reader;
  Choice choice;
  REQUIRE(read_choice(dataset_choices(), node, reader, choice));
  DataLocation where;
  where.path.text = path;
  return choice.as<DatasetOptions>().open(where, SplitKind::training, declared, 1);
}

std::string error_of(const std::string& path, const DeclaredInfo& declared = {}) {
  try {
    open(path, declared);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    return error.what();
  }
  return "it was read";
}

std::vector<std::int32_t> labels_of(const Dataset& dataset, std::int64_t index) {
  std::vector<std::int32_t> labels(static_cast<std::size_t>(dataset.info().target.count()));
  dataset.read_labels(index, labels.data());
  return labels;
}

using Numbers = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("image_text: a table names images and their texts") {
  const TempFolder folder;
  const std::string pixels = random_bytes(12, 1);
  write_file(folder / "photos/a.png", png(3, 4, 0, pixels));
  write_file(folder / "photos/b.png", png(3, 4, 0, random_bytes(12, 2)));
  write_file(folder / "t.csv", "text,image\n\"b\xc3\xa9,b\", photos/b.png\n\nbb2,photos/a.png\n,photos/a.png\n");
  const auto dataset = open(folder / "t.csv");
  const DatasetInfo& info = dataset->info();
  CHECK(info.class_names == std::vector<std::string>{"(blank)", ",", "2", "b", "\xc3\xa9"});
  CHECK(info.classes == 5);
  CHECK(info.target == Shape{4});
  REQUIRE(dataset->size() == 3);
  CHECK(labels_of(*dataset, 0) == Numbers{3, 4, 1, 3});
  CHECK(labels_of(*dataset, 1) == Numbers{3, 3, 2, 0});
  CHECK(labels_of(*dataset, 2) == Numbers{0, 0, 0, 0});
  CHECK(info.min_steps == 4);
  CHECK(info.min_steps_of == folder / "t.csv, line 2");
  CHECK(dataset->target_name_of(1) == folder / "t.csv, line 4");
  Sample sample;
  open(folder / "t.csv", {.sample = Shape{3, 4, 1}})->read(1, sample);
  CHECK(std::string(static_cast<const char*>(sample.values), 12) == pixels);
  CHECK(open(folder / "t.csv", {}, "7")->info().target == Shape{7});
  CHECK(open(folder / "t.csv", {}, "7")->info().fingerprint != info.fingerprint);
}

TEST_CASE("image_text: the names of the images in a folder are their texts") {
  const TempFolder folder;
  write_file(folder / "deep/ba.png", png(3, 4, 0, random_bytes(12, 1)));
  write_file(folder / "aac.PNG", png(3, 4, 0, random_bytes(12, 2)));
  const auto dataset = open(folder.text());
  REQUIRE(dataset->size() == 2);
  CHECK(labels_of(*dataset, 0) == Numbers{1, 1, 3});
  CHECK(labels_of(*dataset, 1) == Numbers{2, 1, 0});
  CHECK(dataset->info().min_steps == 4);

  // Held-out texts have the numbers of the training texts.
  const TempFolder other;
  write_file(other / "c.png", png(3, 4, 0, random_bytes(12, 3)));
  CHECK(labels_of(*open(other.text(), {.training = &dataset->info()}), 0) == Numbers{3, 0, 0});
  write_file(other / "d.png", png(3, 4, 0, random_bytes(12, 3)));
  CHECK(error_of(other.text(), {.training = &dataset->info()}).find("d.png: the text has the character 'd'") !=
        std::string::npos);
}

TEST_CASE("image_text: the characters are a part of the fingerprint, and the longest text of any split counts") {
  const TempFolder first, second, held_out;
  write_file(first / "ab.png", png(3, 4, 0, random_bytes(12, 1)));
  write_file(second / "xy.png", png(3, 4, 0, random_bytes(12, 1)));
  write_file(held_out / "aaa.png", png(3, 4, 0, random_bytes(12, 2)));
  CHECK(open(first.text())->info().fingerprint != open(second.text())->info().fingerprint);
  const Data data(data_options(format("{{dataset: image_text, path: {}, length: 3, validation: {{path: {}}}}}",
                                      first.text(), held_out.text())),
                  1);
  CHECK(data.info().targets[0].min_steps == 5);
  CHECK(data.info().targets[0].min_steps_of.find("aaa.png") != std::string::npos);
}

TEST_CASE("image_text: mistakes name the file and the line") {
  const TempFolder folder;
  write_file(folder / "a.png", png(3, 4, 0, random_bytes(12, 1)));
  const auto error = [&](const std::string& table, const DeclaredInfo& declared = {}) {
    write_file(folder / "t.csv", table);
    return error_of(folder / "t.csv", declared);
  };
  const auto says = [](const std::string& message, const std::string& text) {
    CAPTURE(message);
    CHECK(message.find(text) != std::string::npos);
  };
  says(error("image,txt\na.png,b\n"), "has no column 'text'");
  says(error("image,text\n"), "has no line of values");
  says(error(""), "t.csv");
  says(error("image,text\na.png,b\nb.png,c\n"), "line 3: there is no file");
  says(error("image,text\na.png,b,c\n"), "line 2 has 3 fields, not 2");
  says(error("image,text\na.png,\xff\n"), "line 2, column 'text'");
  says(error("image,text\na.png,bc\n", {.classes = 4}), "2 different characters, which are 3 classes with the blank");
  const auto training = open(folder / "t.csv");
  says(error("image,text\na.png,bcb\n", {.training = &training->info()}),
       "line 2: the text has 3 characters, but targets have 2");
  says(error_of(folder / "missing.csv"), "missing.csv");
}

}  // namespace trainctl::test::image_text_test
