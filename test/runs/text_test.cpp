// Tests text that comes from data: it never controls the terminal that shows it, and text that is not UTF-8 is refused
// before a run writes it into its config.
#include <filesystem>

#include "core/base/format.h"
#include "core/base/utf8.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/files.h"

namespace trainctl::test::text_test {
namespace {

namespace fs = std::filesystem;

const std::string image_config = R"(
data: {dataset: image_folder, path: d, transform: [rescale: 1/255]}
model: {layers: [flatten, dense: {units: 2, activation: softmax}]}
train: {batch_size: 4, epochs: 1, loss: sparse_categorical_crossentropy, optimizer: sgd}
cluster: {ranks: 1}
)";

std::string table_config(const std::string& columns) {
  return format(R"(
data: {{dataset: csv, path: t.csv, target: kind{}}}
model: {{layers: [dense: {{units: 2, activation: softmax}}]}}
train: {{batch_size: 4, epochs: 1, loss: sparse_categorical_crossentropy, optimizer: sgd}}
cluster: {{ranks: 1}}
)",
                columns);
}

void write_images(const Folder& folder, const std::string& name, unsigned seed) {
  for (unsigned i = 0; i < 4; ++i) {
    folder.write(format("{}/{}.png", name, i), png(4, 4, 2, random_bytes(48, seed + i)));
  }
}

// Whether the text is UTF-8 without control characters for a terminal.
bool harmless(const std::string& text) {
  if (find_invalid_utf8(text)) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool c1 = byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f || c1) return false;
  }
  return true;
}

// Checks that every command fails with this exit code and these words, and that no run is begun.
void check_refused(const Folder& folder, const std::vector<std::vector<std::string>>& commands,
                   const std::vector<std::string>& words, const std::string& inside = ".", int code = 3) {
  for (const std::vector<std::string>& command : commands) {
    const Finished end = trainctl(folder, command, inside);
    INFO(command[0] << ": " << end.errors);
    CHECK(end.code == code);
    for (const std::string& word : words) CHECK(contains(end.errors, word));
    CHECK(harmless(end.errors));
    CHECK_FALSE(fs::exists(fs::path(folder / inside) / "runs"));
  }
}

}  // namespace

TEST_CASE("class folders whose names are not UTF-8 are refused before training, with a command to convert them") {
  const Folder folder;
  write_images(folder, "d/caf\xe9", 1);
  write_images(folder, "d/th\xe9", 9);
  folder.write("c.yaml", image_config);
  check_refused(folder, {{"check", "c.yaml"}, {"run", "c.yaml"}, {"init", "d"}},
                {"d/caf\\xe9", "not UTF-8", "convmv -r -f LATIN1 -t UTF-8 --notest", "d/ ("});
}

TEST_CASE("words of a table that are not UTF-8 are refused with their line and a command to convert them") {
  const Folder folder;
  folder.write("c.yaml", table_config(""));
  const auto check = [&](const std::string& table, const std::string& place) {
    folder.write("t.csv", table);
    check_refused(folder, {{"check", "c.yaml"}, {"run", "c.yaml"}, {"init", "t.csv"}},
                  {"t.csv", place, "\\xe9' is not UTF-8", "iconv -f LATIN1 -t UTF-8 "});
  };
  check("a,kind\n1,the\n2,th\xe9\n3,the\n4,th\xe9\n", "line 3, column 'kind'");
  check("a,kind\nx,the\ncaf\xe9,tea\nx,the\ncaf\xe9,tea\n", "line 3, column 'a'");
  check("caf\xe9,kind\n1,the\n2,tea\n3,the\n4,tea\n", "the name of a column: 'caf\\xe9'");
  folder.write("t.csv", "a,note,kind\n1,caf\xe9,the\n2,y,tea\n3,y,the\n4,y,tea\n");  // the column `note` is not read
  folder.write("c.yaml", table_config(", columns: [a]"));
  CHECK(trainctl(folder, {"check", "c.yaml"}).code == 0);
}

TEST_CASE("paths and names in the run's config that are not UTF-8 are refused") {
  const Folder folder;
  const std::string place = "caf\xe9";
  write_images(folder, place + "/d/one", 1);
  write_images(folder, place + "/d/two", 9);
  folder.write(place + "/c.yaml", image_config);
  check_refused(folder, {{"check", "c.yaml"}, {"run", "c.yaml"}}, {"caf\\xe9/d', which is not UTF-8", "convmv"}, place,
                2);
  check_refused(folder, {{"init", place + "/d"}}, {"caf\\xe9/d", "not UTF-8", "convmv"});
  write_images(folder, "d/one", 1);
  write_images(folder, "d/two", 9);
  folder.write("n\xe9.yaml", image_config);
  check_refused(folder, {{"check", "n\xe9.yaml"}, {"run", "n\xe9.yaml"}}, {"name becomes 'n\\xe9'", "not UTF-8"}, ".",
                2);
}

TEST_CASE("escape sequences in the names of classes and files are shown, never executed") {
  const Folder folder;
  const std::string red = "red\x1b[31m", bell =
                                             "bell\a\xc2\x9b"
                                             "2J\x7f";
  write_images(folder, "d/" + red, 1);
  write_images(folder, "d/" + bell, 9);
  folder.write("c.yaml", image_config);
  const std::string photo = "photo\x1b]0;title\a.png";
  folder.write(photo, png(4, 4, 2, random_bytes(48, 3)));
  folder.write("bad\x1b[5m.png", "no image");
  const auto shown = [&](const std::vector<std::string>& command, int code, const std::string& word) {
    const Finished end = trainctl(folder, command);
    INFO(command[0] << " " << command.back() << ": " << end.out << end.errors);
    CHECK(end.code == code);
    CHECK(harmless(end.out));
    CHECK(harmless(end.errors));
    CHECK(contains(end.out + end.errors, word));
    return end.out;
  };
  shown({"init", "d", "-o", "made"}, 0, "");
  shown({"check", "c.yaml"}, 0, "");
  shown({"run", "c.yaml", "--run-dir", "r"}, 0, "");
  shown({"predict", "r", photo, "--format", "table"}, 0, "\\u001b[31m");
  shown({"predict", "r", photo, "--format", "csv"}, 0, "photo\\u001b]0;title\\u0007.png");
  const Json json = Json::parse(shown({"predict", "r", photo, "--json"}, 0, "\\u001b"));
  CHECK(contains(json.at("predictions").at(0).at("input").get<std::string>(), photo));
  CHECK(json.at("predictions").at(0).at("probabilities").contains(bell));
  shown({"predict", "r", "bad\x1b[5m.png"}, 3, "bad\\u001b[5m.png");
  shown({"eval", "c.yaml", "--run", "r", "--data", "training", "--confusion"}, 0, "red\\u001b[31m");
  shown({"inspect", "r"}, 0, "");
  shown({"report", "r"}, 0, "");
  shown({"check", "absent\x1b[5m.yaml"}, 2, "absent\\u001b[5m.yaml");
  shown({"check", "c.yaml", "--set", "train.loss=\x1b[5m"}, 2, "\\u001b[5m");
  CHECK(harmless(read_file(folder / "r/log.txt")));
  // Files contain the names unchanged.
  CHECK(trainctl(folder, {"predict", "r", photo, "--out", "p.csv"}).code == 0);
  CHECK(contains(read_file(folder / "p.csv"), photo));
}

TEST_CASE("a line break in an option does not start a line of a generated file") {
  const Folder folder;
  folder.write("c.yaml", R"(
data: {dataset: synthetic, samples: 40, shape: [8, 8, 3], classes: 5}
model: {layers: [flatten, dense: {units: 5, activation: softmax}]}
train: {batch_size: 4, epochs: 1, loss: sparse_categorical_crossentropy, optimizer: sgd}
)");
  const auto launched = [&](const char* where, const std::string& option, const std::string& value) {
    const Finished end = trainctl(folder, {"launch", where, "c.yaml", "--nodes", "2", "--ranks", "2", option, value});
    CAPTURE(option, end.out, end.errors);
    CHECK_FALSE(contains(end.out, "\nRUN evil"));
    CHECK(harmless(end.out + end.errors));
    return end;
  };
  const Finished image = launched("kubernetes", "--image", "x\nRUN evil");
  CHECK(image.code == 2);
  CHECK(contains(image.errors, "--image 'x\\u000aRUN evil' is not the name of an image"));
  const Finished volume = launched("kubernetes", "--volume", "x\nRUN evil\xc2\x85z");
  CHECK(volume.code == 2);
  CHECK(contains(volume.errors, "--volume 'x\\u000aRUN evil\\u0085z' is not the name of a volume claim"));
  const Finished job = launched("slurm", "--sbatch", "x=1\nRUN evil"),
                 array = launched("slurm", "--array", "1\nRUN evil");
  CHECK(job.code == 2);
  CHECK(contains(job.errors, "line break or another control character"));
  CHECK(array.code == 2);
  CHECK(contains(array.errors, "--array 1\\u000aRUN evil is not a list of tasks"));
}

}  // namespace trainctl::test::text_test
