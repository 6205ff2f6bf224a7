// Tests init on real-world folders: names of splits, nested folders, files of file managers.
#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/files.h"

namespace trainctl::test::init_folders_test {
namespace {

// Writes small images of two classes.
void write_classes(const Folder& folder, const std::string& path) {
  for (const char* name : {"buildings", "sea"}) {
    for (unsigned i = 0; i < 6; ++i) {
      folder.write(format("{}/{}/{}.png", path, name, i), png(8, 8, 2, random_bytes(192, i)));
    }
  }
}

}  // namespace

TEST_CASE("init recognizes the splits of a data set by names in any case, within other words, and nested") {
  const struct {
    const char *training, *held_out, *key;
    const char *training_path, *held_out_path;  // in the config
  } cases[] = {
      {"Training", "Testing", "test", "Training", "Testing"},
      {"Train", "Test", "test", "Train", "Test"},
      {"TRAIN", "TEST", "test", "TRAIN", "TEST"},
      {"seg_train/seg_train", "seg_test/seg_test", "test", "seg_train/seg_train", "seg_test/seg_test"},
      {"train_set", "test_set", "test", "train_set", "test_set"},
      {"training_set/training_set", "test_set/test_set", "test", "training_set/training_set", "test_set/test_set"},
      {"archive/Train", "archive/Valid", "validation", "archive/Train", "archive/Valid"},
      {"train", "validation", "validation", "train", "validation"}};
  for (const auto& one : cases) {
    const Folder folder;
    write_classes(folder, format("photos/{}", one.training));
    write_classes(folder, format("photos/{}", one.held_out));
    const Finished made = trainctl(folder, {"init", "photos"});
    INFO(one.training << "\n" << tail(made.errors));
    REQUIRE(made.code == 0);
    const std::string text = read_file(folder / "photos-small.yaml");
    CHECK(contains(text, format("  path: photos/{} ", one.training_path)));
    CHECK(contains(text, format("  {}: {{path: photos/{}}}", one.key, one.held_out_path)));
    CHECK(contains(text, "classes: 2"));
    CHECK(contains(text, "2 classes (buildings, sea)"));
  }
  // Classes that are named like splits are classes.
  const Folder folder;
  for (const char* name : {"train", "bus"})
    folder.write(format("vehicles/{}/1.png", name), png(2, 2, 2, random_bytes(12, 1)));
  for (const char* name : {"train", "bus"})
    folder.write(format("vehicles/{}/2.png", name), png(2, 2, 2, random_bytes(12, 2)));
  REQUIRE(trainctl(folder, {"init", "vehicles"}).code == 0);
  CHECK(contains(read_file(folder / "vehicles-small.yaml"), "2 classes (bus, train)"));
}

TEST_CASE("init counts images without a usual file extension, and the files that it skips") {
  const Folder folder;
  write_classes(folder, "photos");
  folder.write("photos/sea/IMG_0001", png(8, 8, 2, random_bytes(192, 9)));
  folder.write("photos/sea/._1.png", "Mac OS X");
  folder.write("photos/sea/.DS_Store", "Bud1");
  folder.write("photos/buildings/Thumbs.db", "windows");
  folder.write("photos/__MACOSX/sea/._1.png", "Mac OS X");
  folder.write("photos/sea/scan.tif", "II*");
  const Finished made = trainctl(folder, {"init", "photos"});
  INFO(tail(made.errors));
  REQUIRE(made.code == 0);
  const std::string text = read_file(folder / "photos.yaml");
  for (const std::string& told : {made.out, text}) {
    CHECK(contains(told, " samples for training, "));
    CHECK(contains(told, "1 image is not read (.tif)"));
    CHECK(contains(told, "3 files are skipped"));
    CHECK(contains(told, ".DS_Store, ._*, Thumbs.db"));
  }
  const Finished run = trainctl(folder, {"run", "photos-small.yaml", "--ranks", "1", "--set", "train.max_steps=1"});
  INFO(tail(run.errors));
  CHECK(run.code == 0);
  CHECK(contains(run.errors, "3 files are skipped"));
}

TEST_CASE("init notices that a table has no header, and the config uses its first line as data") {
  const Folder folder;
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += format("{},{},{}\n", i % 2 == 0 ? "low" : "high", i % 3 == 0 ? "old" : "new", i % 4 == 0 ? "no" : "yes");
  folder.write("words.csv", text);
  const Finished made = trainctl(folder, {"init", "words.csv"});
  INFO(tail(made.errors));
  REQUIRE(made.code == 0);
  CHECK(contains(read_file(folder / "words.yaml"), "header: false"));
  CHECK(contains(read_file(folder / "words.yaml"), "32 samples for training, 8 held out"));
}

TEST_CASE("init reports a word among the numbers of the target column") {
  const Folder folder;
  std::string text = "sqft,price\n";
  for (int i = 0; i < 60; ++i) text += format("{},{}\n", 50 + i, i == 30 ? "$740" : std::to_string(300 + 4 * i));
  folder.write("homes.csv", text);
  const Finished made = trainctl(folder, {"init", "homes.csv"});
  CHECK(made.code == 3);
  CHECK(contains(made.errors, "homes.csv: line 32, column 'price': '$740' is not a number"));
}

}  // namespace trainctl::test::init_folders_test
