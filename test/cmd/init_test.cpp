// Tests init: what it finds in folders of images, sounds, volumes and texts, and that its configs train without
// changes.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/files.h"
#include "test/support/images.h"
#include "test/support/wav.h"

namespace trainctl::test::init_test {
namespace {

namespace fs = std::filesystem;

// Writes images of noise around a colour of their class, 60 pixels high and 72 or 80 wide.
void write_images(const Folder& folder, const std::string& path, int images, bool gray = false) {
  std::mt19937 random(7);
  const std::vector<std::string> classes{"daisy", "rose, wild", "tulip"};
  for (std::size_t k = 0; k < classes.size(); ++k) {
    for (int i = 0; i < images; ++i) {
      const std::uint32_t width = i % 2 == 0 ? 72 : 80;
      std::string pixels;
      for (std::uint32_t p = 0; p < 60 * width; ++p) {
        for (std::size_t c = 0; c < (gray ? 1 : 3); ++c) {
          pixels += static_cast<char>(random() % 100 + (gray ? 50 * k : c == k ? 150 : 0));
        }
      }
      const std::string bytes =
          i % 2 == 0 ? jpeg(60, width, gray ? 1 : 3, pixels) : png(60, width, gray ? 0 : 2, pixels);
      folder.write(format("{}/{}/{}.{}", path, classes[k], i, i % 2 == 0 ? "jpg" : "png"), bytes);
    }
  }
}

double last_accuracy(const std::string& run) {
  return events(run, "epoch").back()["validation"]["accuracy"].get<double>();
}

}  // namespace

TEST_CASE("init writes three configs for images in class folders, which pass check and train without changes") {
  const Folder folder;
  write_images(folder, "my flowers", 20);
  const Finished made = trainctl(folder, {"init", "my flowers", "--json"});
  INFO(tail(made.errors));
  REQUIRE(made.code == 0);
  const Json configs = Json::parse(made.out)["configs"];
  REQUIRE(configs.size() == 3);
  for (const Json& one : configs) {
    const std::string config = one["config"];
    CAPTURE(config);
    const Finished checked = trainctl(folder, {"check", config, "--ranks", "1", "--json"});
    INFO(tail(checked.errors));
    CHECK(checked.code == 0);
  }
  CHECK(Json::parse(trainctl(folder, {"schema"}).out) == Json::parse(read_file(folder / "trainctl.schema.json")));
  const Finished run = trainctl(folder, {"run", "my-flowers-small.yaml", "--ranks", "1", "--set", "train.epochs=8"});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  CHECK(last_accuracy(folder / "runs/my-flowers-small") > 0.9);
  const Finished step = trainctl(folder, {"run", "my-flowers.yaml", "--ranks", "1", "--set", "train.max_steps=1"});
  INFO(tail(step.errors));
  CHECK(step.code == 0);

  const Finished again = trainctl(folder, {"init", "my flowers"});
  CHECK(again.code == 2);
  CHECK(contains(again.errors, "my-flowers.yaml: this file exists"));
  CHECK(trainctl(folder, {"init", "my flowers", "--force"}).code == 0);
}

TEST_CASE("init accepts held-out folders, gray images and other folders for the config, and names unreadable files") {
  const Folder folder;
  write_images(folder, "data/scans/train", 4, true);
  write_images(folder, "data/scans/val", 2, true);
  folder.write("data/scans/train/tulip/zz.png", "no image");  // the last image
  folder.write("data/scans/val/daisy/0-empty.png", "");
  folder.write("data/scans/test/1.png", "an image without a class");
  const Finished made = trainctl(folder, {"init", "data/scans", "-o", "configs"});
  INFO(tail(made.errors));
  REQUIRE(made.code == 0);
  const std::string text = read_file(folder / "configs/scans-small.yaml");
  CHECK(contains(text, "path: ../data/scans/train"));
  CHECK(contains(text, "validation: {path: ../data/scans/val}"));
  CHECK(contains(text, "shape: [32, 32, 1]"));
  CHECK(contains(text, "on_error: skip"));
  for (const std::string& told : {made.out, text}) {
    CHECK(contains(told, "data/scans/train/tulip/zz.png: "));
    CHECK(contains(told, "1 other cannot be read, either"));
  }
  // An empty file is found among any number of images.
  fs::create_directories(folder / "many/train/tulip");
  for (int i = 0; i < 150; ++i) {
    fs::copy_file(folder / "data/scans/train/tulip/0.jpg", folder / format("many/train/tulip/{:03}.jpg", i));
    if (i == 0) fs::copy(folder / "data/scans/train/daisy", folder / "many/train/daisy");
  }
  folder.write("many/train/tulip/077.jpg", "");
  const Finished many = trainctl(folder, {"init", "many"});
  INFO(tail(many.errors));
  REQUIRE(many.code == 0);
  CHECK(contains(many.out, "many/train/tulip/077.jpg: is empty"));
  CHECK(contains(read_file(folder / "many-small.yaml"), "# many/train/tulip/077.jpg: is empty"));
  const Finished flag = trainctl(folder, {"init", "many", "--targets", "values"});
  CHECK(flag.code == 2);
  CHECK(contains(flag.errors, "the classes of images are their folders"));
  const Finished run = trainctl(folder, {"run", "configs/scans-small.yaml", "--ranks", "1", "--set", "train.epochs=1"});
  INFO(tail(run.errors));
  CHECK(run.code == 0);
}

TEST_CASE("the config that init writes for class folders of sounds or volumes passes check and trains") {
  std::mt19937 random(31);
  const auto nifti = [&](int depth, int height, int width, double shift) {
    std::string bytes(352, '\0');
    const auto put = [&](std::size_t at, std::uint64_t value, int count) {
      bytes.replace(at, static_cast<std::size_t>(count), little_endian(value, count));
    };
    put(0, 348, 4);
    for (const auto& [at, size] : {std::pair<std::size_t, int>{40, 3}, {42, width}, {44, height}, {46, depth}}) {
      put(at, static_cast<std::uint64_t>(size), 2);
    }
    put(70, 16, 2);  // float32
    put(72, 32, 2);
    put(108, 0x43B00000, 4);  // 352.0, where the values begin
    bytes.replace(344, 4, std::string("n+1\0", 4));
    std::vector<float> values(static_cast<std::size_t>(depth * height * width));
    for (float& value : values) value = std::normal_distribution<float>(static_cast<float>(shift))(random);
    return bytes + raw(values);
  };
  const auto sound = [&](double tone, int rate, int length) {
    std::vector<int> values(static_cast<std::size_t>(length));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] =
          static_cast<int>(9000 * std::sin(tone * static_cast<double>(i) / rate)) + static_cast<int>(random() % 200);
    }
    return wav16(values, 1, rate);
  };
  struct Case {
    std::string name;
    std::function<std::string(int kind, int number)> file;
    std::string ending;
    std::vector<std::string> lines;  // that the config must contain
  };
  const std::vector<Case> cases{
      {"words",
       [&](int kind, int i) { return sound(kind == 0 ? 3000 : 9000, 8000, 4000 + 100 * i); },
       "wav",
       {"audio_classification", "mel_spectrogram", "units: 2", "stratify: true"}},
      {"rates",
       [&](int kind, int i) { return sound(kind == 0 ? 3000 : 9000, i % 3 == 0 ? 4000 : 8000, 900); },
       "wav",
       {"sampling_rate: 8000", "num_mel_bins: "}},
      {"long",
       [&](int kind, int) { return sound(kind == 0 ? 30 : 90, 100, 1500); },
       "WAV",
       {"output_sequence_length: 1000"}},
      {"scans",
       [&](int kind, int) { return nifti(9, 8, 10, kind); },
       "nii",
       {"dataset: nifti", "shape: [9, 8, 10, 1]", "max_pooling3d", "units: 2"}},
      {"slices", [&](int kind, int) { return nifti(2, 6, 5, kind); }, "nii", {"shape: [2, 6, 5, 1]", "conv3d"}},
  };
  for (const bool splits : {false, true}) {
    const Folder folder;
    const std::vector<std::string> folders =
        splits ? std::vector<std::string>{"train/", "test/", "val/"} : std::vector<std::string>{""};
    for (const Case& one : cases) {
      CAPTURE(one.name, splits);
      for (const std::string& split : folders) {
        for (int i = 0; i < 20; ++i) {
          folder.write(format("{}/{}{}/{}.{}", one.name, split, i % 2 == 0 ? "low" : "high", i, one.ending),
                       one.file(i % 2, i));
        }
      }
      const Finished made = trainctl(folder, {"init", one.name});
      INFO(tail(made.errors));
      REQUIRE(made.code == 0);
      const std::string config = one.name + ".yaml", text = read_file(folder / config);
      CAPTURE(text);
      for (const std::string& line : one.lines) {
        if (!splits || line != "stratify: true") CHECK(contains(text, line));
      }
      if (splits) CHECK(contains(text, "validation: {path: " + one.name + "/val}"));
      const Finished checked = trainctl(folder, {"check", config, "--ranks", "1", "--quiet"});
      INFO(tail(checked.errors));
      CHECK(checked.code == 0);
      const Finished run = trainctl(folder, {"run", config, "--ranks", "1", "--quiet", "--set", "train.epochs=1"});
      INFO(tail(run.errors));
      CHECK(run.code == 0);
    }
    CHECK(trainctl(folder, {"init", "scans", "--targets", "values", "--force"}).code == 2);
  }
}

TEST_CASE("init follows the user's choice of the kind of targets") {
  const Folder folder;
  std::string table = "size,rooms\n";
  std::vector<float> x;
  std::vector<std::int64_t> many, few, pairs;
  for (int i = 0; i < 60; ++i) {
    x.push_back(static_cast<float>(i) / 30 - 1);
    many.push_back(i);  // taken for values
    few.push_back(i % 4);
    for (int k = 0; k < 2; ++k) pairs.push_back(i % 7);
    table += format("{},{}\n", i, i % 4);  // taken for classes
  }
  folder.write("rooms.csv", table);
  for (const std::string name : {"many", "few", "pairs", "fractions"}) {
    folder.write(name + "/x.npy", npy("<f4", "(60, 1)", raw(x)));
  }
  folder.write("many/y.npy", npy("<i8", "(60,)", raw(many)));
  folder.write("few/y.npy", npy("<i8", "(60,)", raw(few)));
  folder.write("pairs/y.npy", npy("<i8", "(60, 2)", raw(pairs)));
  folder.write("fractions/y.npy", npy("<f4", "(60,)", raw(x)));
  struct Case {
    std::string path, targets, line;
  };
  const std::string classes = "sparse_categorical_crossentropy", values = "mean_squared_error";
  for (const Case& one : {Case{"many", "", values}, Case{"many", "classes", classes}, Case{"few", "", classes},
                          Case{"few", "values", values}, Case{"rooms.csv", "", classes},
                          Case{"rooms.csv", "values", values}, Case{"rooms.csv", "classes", classes}}) {
    std::vector<std::string> arguments{"init", one.path, "--force"};
    if (!one.targets.empty()) arguments.insert(arguments.end(), {"--targets", one.targets});
    CAPTURE(one.path, one.targets);
    const Finished made = trainctl(folder, arguments);
    INFO(tail(made.errors));
    REQUIRE(made.code == 0);
    const std::string config = fs::path(one.path).stem().string() + ".yaml";
    CHECK(contains(read_file(folder / config), one.line));
    const Finished run = trainctl(folder, {"run", config, "--ranks", "1", "--quiet", "--set", "train.max_steps=1"});
    INFO(tail(run.errors));
    CHECK(run.code == 0);
  }
  for (const std::string path : {"pairs", "fractions"}) {
    const Finished refused = trainctl(folder, {"init", path, "--targets", "classes"});
    CAPTURE(refused.errors);
    CHECK(refused.code == 3);
    CHECK(contains(refused.errors, "which cannot be the classes of --targets"));
  }
  CHECK(trainctl(folder, {"init", "few", "--targets", "labels"}).code == 2);
}

TEST_CASE("init writes a language model for text, and a classifier for texts with classes, which train") {
  const Folder folder;
  std::mt19937 random(4);
  std::string lines, corpus;
  for (int i = 0; i < 200; ++i) {
    const bool good = i % 2 == 0;
    std::string text;
    for (int k = 0; k < 8; ++k) text += k == 3 ? (good ? "great " : "awful ") : format("word{} ", random() % 9);
    corpus += text + "\n";
    lines += json_text(Json{{"id", i}, {"review", text}, {"sentiment", good ? "positive" : "negative"}}) + "\n";
    folder.write(format("classes/{}/{}.txt", good ? "positive" : "negative", i), text);
  }
  folder.write("corpus/a.md", corpus);
  folder.write("corpus/more/b.txt", corpus);
  folder.write("reviews.jsonl", lines);
  folder.write("only.jsonl", json_text(Json{{"page", corpus}}) + "\n");
  const auto made = [&](const std::string& path, const std::string& word) {
    const Finished end = trainctl(folder, {"init", path, "--force"});
    INFO(end.out << end.errors);
    REQUIRE(end.code == 0);
    CHECK(contains(end.out, word));
    const std::string config = path.substr(0, path.find('.')) + ".yaml";
    CHECK(trainctl(folder, {"check", config}).code == 0);
    const Finished run =
        trainctl(folder, {"run", config, "--ranks", "1", "--run-dir", "run-" + path, "--set", "train.epochs=8"});
    INFO(tail(run.errors));
    CHECK(run.code == 0);
    return events(folder / ("run-" + path), "epoch");
  };
  for (const char* path : {"corpus", "only.jsonl"}) {
    const auto epochs = made(path, "a language model of bytes on");
    CHECK(epochs.back()["validation"]["loss"].get<double>() < epochs[0]["validation"]["loss"].get<double>());
  }
  for (const char* path : {"reviews.jsonl", "classes"}) {
    CHECK(made(path, "a bag of words on texts, 2 classes").back()["validation"]["accuracy"].get<double>() > 0.9);
  }
  const Finished all = trainctl(folder, {"init", "only.jsonl", "--force"});
  CHECK_FALSE(contains(all.out, "note:"));
  const Finished some = trainctl(folder, {"init", "reviews.jsonl", "--force"});
  CHECK(
      contains(some.out, "'review' of each line is read as the text, and 'sentiment' as its class, and the key id is"));
  lines.clear();
  for (int i = 0; i < 40; ++i) {
    lines += json_text(Json{{"prompt", format("Which number follows {}?", i)}, {"completion", format("It is {}.", i)}});
    lines += "\n";
  }
  folder.write("pairs.jsonl", lines);
  const Finished pairs = trainctl(folder, {"init", "pairs.jsonl"});
  REQUIRE(pairs.code == 0);
  CHECK(contains(pairs.out, "'prompt' of each line is read as the text, and the key completion is left out"));
  CHECK(contains(pairs.out, "jq -c '{text: (.prompt + .completion)}' pairs.jsonl > joined.jsonl"));
  const Finished other = trainctl(folder, {"init", "reviews.jsonl", "--target", "id", "--out", "other"});
  CHECK(contains(other.out, "a bag of words on texts, 200 classes"));
}

TEST_CASE("init tells how data in formats that are not read can be converted") {
  const Folder folder;
  const auto refused = [&](const std::string& path, const std::string& words) {
    const Finished made = trainctl(folder, {"init", path});
    INFO(made.errors);
    CHECK(made.code == 3);
    CHECK(contains(made.errors, words));
  };
  folder.write("sales.XLSX", "PK");
  refused("sales.XLSX", "sales.XLSX: is a table of Excel, which is not read; write it as CSV");
  refused("sales.XLSX", "pandas.read_excel(sys.argv[1]).to_csv(sys.argv[2], index=False)' sales.XLSX sales.csv");
  for (const char* name : {"scans/a/2.tiff", "scans/a/1.tiff", "scans/b/3.tif", "scans/b/readme.dat"}) {
    folder.write(name, "II*");
  }
  refused("scans", "scans/a/1.tiff: is an image in the format TIFF, which is not read, like 2 files more");
  folder.write("scans/0.zip", "PK");  // the format of most files is named
  fs::create_directories(folder / "scans/a/0.tiff");
  folder.write("scans/a/0.tiff/readme.dat", "notes");
  refused("scans", "scans/a/1.tiff: is an image in the format TIFF, which is not read, like 2 files more");
  for (const char* name : {"mixed/b.zip", "mixed/a.xlsx", "mixed/c.parquet"}) folder.write(name, "PK");
  refused("mixed", "mixed/a.xlsx: is a table of Excel, which is not read; write it as CSV");
  folder.write("words/yes/1.mp3", "ID3");
  refused("words", "words/yes/1.mp3: is a sound in the format MP3, which is not read; write the sounds as WAV");
  folder.write("titanic.zip", "PK");
  refused("titanic.zip", "titanic.zip: is an archive, which is not read; unpack it");
  folder.write("net.keras", "PK");
  refused("net.keras", "net.keras: is a network of Keras, which is not read; `trainctl import` makes a config");
}

TEST_CASE("init refuses a folder without known data, and lists the networks") {
  const Folder folder;
  folder.write("notes/a.dat", "hello");
  const Finished none = trainctl(folder, {"init", "notes"});
  CHECK(none.code == 3);
  CHECK(contains(none.errors, "notes: init does not recognize this data"));
  CHECK(trainctl(folder, {"init", "nowhere"}).code == 3);
  CHECK(trainctl(folder, {"init"}).code == 2);
  const Json presets = Json::parse(trainctl(folder, {"init", "--list", "--json"}).out);
  std::map<std::string, std::int64_t> parameters;
  for (const Json& preset : presets) parameters[preset["name"]] = preset["parameters"];
  CHECK(parameters["resnet50"] == 25'557'032);  // torchvision's
  CHECK(parameters["vgg16"] == 138'357'544);    // Keras'
  CHECK(parameters["efficientnet_b0"] == 5'288'548);
  CHECK(contains(trainctl(folder, {"init", "--list"}).out, "25,557,032"));
}

}  // namespace trainctl::test::init_test
