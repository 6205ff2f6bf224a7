// Tests init with unusual folders, texts and arrays: its config passes check and trains for an epoch, or init says in
// one error what to do.
#include <filesystem>
#include <functional>
#include <random>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/cmd/init_cases.h"
#include "test/support/command.h"
#include "test/support/files.h"
#include "test/support/wav.h"

namespace trainctl::test::init_kinds_test {
namespace {

namespace fs = std::filesystem;
using namespace init_cases;

std::string image(std::uint32_t height, std::uint32_t width, unsigned seed) {
  return png(height, width, 2, random_bytes(std::size_t{3} * height * width, seed));
}

// Writes 12 images of this size for each class.
std::function<void(const Folder&)> images(const std::string& path, const std::vector<std::string>& classes,
                                          std::uint32_t side, const std::string& ending = "png") {
  return [=](const Folder& folder) {
    for (const std::string& name : classes) {
      for (unsigned i = 0; i < 12; ++i) {
        folder.write(format("{}/{}/{}.{}", path, name, i, ending), image(side, side, i + 12 * name.size()));
      }
    }
  };
}

std::function<void(const Folder&)> sounds(const std::string& path, const std::vector<std::string>& classes,
                                          std::size_t length, const std::string& ending = "wav") {
  return [=](const Folder& folder) {
    std::mt19937 random(3);
    for (const std::string& name : classes) {
      for (int i = 0; i < 12; ++i) {
        std::vector<int> values(length);
        for (int& value : values) value = static_cast<int>(random() % 20000) - 10000;
        folder.write(format("{}/{}/{}.{}", path, name, i, ending), wav16(values, 1, 8000));
      }
    }
  };
}

std::function<void(const Folder&)> texts(const std::string& path, const std::vector<std::string>& classes,
                                         const std::function<std::string(int i)>& text) {
  return [=](const Folder& folder) {
    for (const std::string& name : classes) {
      for (int i = 0; i < 12; ++i) folder.write(format("{}/{}/{}.txt", path, name, i), text(i));
    }
  };
}

// Writes 30 pairs of an image and a mask with these values, a square of each.
std::function<void(const Folder&)> masked(const std::string& images, const std::string& masks,
                                          const std::vector<int>& values, const std::string& ending = "png") {
  return [=](const Folder& folder) {
    for (unsigned i = 0; i < 30; ++i) {
      std::string pixels;
      for (unsigned p = 0; p < 20 * 18; ++p) pixels += static_cast<char>(values[(p / 7 + i) % values.size()]);
      folder.write(format("{}/{}.jpg", images, i), image(20, 18, i));
      folder.write(format("{}/{}.{}", masks, i, ending), png(20, 18, 0, pixels));
    }
  };
}

std::string floats(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = std::uniform_real_distribution<float>(-1, 1)(random);
  return raw(values);
}

std::string numbers(std::size_t count, const std::function<std::int64_t(std::size_t)>& number) {
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(number(i));
  return raw(values);
}

// Writes an .npz file of 40 samples, with targets that the function gives.
std::function<void(const Folder&)> arrays(const std::string& path, const std::function<std::int64_t(std::size_t)>& y) {
  return [=](const Folder& folder) {
    folder.write(
        path, zip({{"x.npy", npy("<f4", "(40, 5)", floats(200, 2))}, {"y.npy", npy("<i8", "(40,)", numbers(40, y))}}));
  };
}

std::function<void(const Folder&)> linked(const std::function<void(const Folder&)>& write, const std::string& path) {
  return [=](const Folder& folder) {
    write(folder);
    fs::create_directories(folder / path);
    for (const auto& entry : fs::directory_iterator(folder / ("real-" + path))) {
      fs::create_directory_symlink(entry.path(), folder / (path + "/" + entry.path().filename().string()));
    }
  };
}

}  // namespace

TEST_CASE("init accepts small, linked and capital files of images, and refuses a single class") {
  check_cases({
      {"dots", images("dots", {"a", "bb"}, 1), true, {"shape: [8, 8, 3]"}},
      {"specks", images("specks", {"a", "bb"}, 2), true, {"shape: [8, 8, 3]"}},
      {"linked", linked(images("real-linked", {"a", "bb"}, 9), "linked"), true, {"classes: 2"}},
      {"capital", images("capital", {"A", "Bb"}, 9, "Png"), true, {"2 classes (A, Bb)"}},
      {"one", images("one", {"a"}, 9), false, {"one: has one class only: 'a'", "at least two classes"}},
  });
}

TEST_CASE("init accepts short, linked and capital files of sounds, and refuses a single class") {
  check_cases({
      {"clicks", sounds("clicks", {"a", "b"}, 1), true, {"output_sequence_length: 64"}},
      {"short", sounds("short", {"a", "b"}, 100), true, {"mel_spectrogram"}},
      {"linked", linked(sounds("real-linked", {"a", "b"}, 700), "linked"), true, {"classes: 2", "fft_length: 256"}},
      {"capital", sounds("capital", {"a", "b"}, 700, "WAV"), true, {"classes: 2"}},
      {"one", sounds("one", {"a"}, 700), false, {"one: has one class only: 'a'"}},
  });
}

TEST_CASE("init accepts empty, linked and capital files of texts, and refuses too little text and a single class") {
  const auto some = [](int i) { return sentence(i); };
  check_cases({
      {"empty", texts("empty", {"a", "b"}, [](int i) { return i < 6 ? "" : sentence(i); }), true, {"2 classes (a, b)"}},
      {"tiny", texts("tiny", {"a", "b"}, [](int) { return "x"; }), true, {"2 classes (a, b)"}},
      {"linked", linked(texts("real-linked", {"a", "b"}, some), "linked"), true, {"2 classes (a, b)"}},
      {"NOTES.TXT", [](const Folder& f) { f.write("NOTES.TXT", std::string(2000, 'a') + "b\n"); }, true, {"bytes"}},
      {"A.JSONL",
       [](const Folder& f) {
         std::string lines;
         for (int i = 0; i < 40; ++i) lines += format("{{\"text\": \"{}\", \"label\": {}}}\n", sentence(i), i % 2);
         f.write("A.JSONL", lines);
       },
       true,
       {"a bag of words on texts, 2 classes"}},
      {"few.txt",
       [](const Folder& f) { f.write("few.txt", "hello"); },
       false,
       {"5 bytes of text, which is too little"}},
      {"one.jsonl",
       [](const Folder& f) {
         std::string lines;
         for (int i = 0; i < 40; ++i) lines += format("{{\"text\": \"{}\", \"label\": \"x\"}}\n", sentence(i));
         f.write("one.jsonl", lines);
       },
       false,
       {"one class only: 'x'"}},
      {"chats.jsonl",
       [](const Folder& f) {
         f.write("chats.jsonl", R"({"id": 7, "messages": [{"role": "user", "content": "hello there"}]})");
       },
       false,
       {"the object holds no text; its keys are: id, messages",
        R"(jq -c '{text: ([.messages[] | .role + ": " + .content] | join("\n"))}' chats.jsonl > texts.jsonl)"}},
      {"large.jsonl",
       [](const Folder& f) {
         std::string lines;
         for (int i = 0; i < 40; ++i)
           lines += format("{{\"text\": \"{}\", \"label\": {}}}\n", sentence(i), i % 2 == 0 ? 7 : 1'900'000'000);
         f.write("large.jsonl", lines);
       },
       false,
       {"has 2 classes, but their numbers go up to 1900000000", "number the classes from 0"}},
  });
}

TEST_CASE("init writes a segmentation for a folder of images and one of their masks") {
  check_cases({
      {"pets",
       masked("pets/images", "pets/masks", {0, 1, 2}),
       true,
       {"segmentation_folder", "classes: 3", "split: 0.2", "a small U-Net on images of 20x16"}},
      {"cells", masked("cells/Images", "cells/Masks", {0, 255}, "PNG"), true, {"values: [0, 255]", "classes: 2"}},
      {"voc", masked("voc/img", "voc/annotations", {0, 4, 255}), true, {"ignore: 255", "classes: 5"}},
      {"split",
       [](const Folder& folder) {
         masked("split/train/images", "split/train/masks", {0, 1})(folder);
         masked("split/val/images", "split/val/masks", {0, 1})(folder);
       },
       true,
       {"validation: {images: split/val/images, masks: split/val/masks}"}},
      {"inner",
       [](const Folder& folder) {
         masked("inner/images/train", "inner/masks/train", {0, 1})(folder);
         masked("inner/images/test", "inner/masks/test", {0, 1})(folder);
       },
       true,
       {"test: {images: inner/images/test, masks: inner/masks/test}", "split: 0.2"}},
      {"blank", masked("blank/images", "blank/masks", {3}), false, {"all pixels of the masks have the value 3"}},
      {"other",
       [](const Folder& folder) {
         masked("other/images", "other/masks", {0, 1})(folder);
         fs::rename(folder / "other/masks/7.png", folder / "other/masks/7_mask.png");
       },
       false,
       {"other/images/7.jpg: has no mask: there is no ", "other/masks/7.png"}},
      {"colors",
       [](const Folder& folder) {
         masked("colors/images", "colors/masks", {0, 1})(folder);
         folder.write("colors/masks/3.png", image(20, 18, 5));
       },
       false,
       {"colors/masks/3.png", "is an image of colors, but class numbers are expected"}},
  });
}

TEST_CASE("init splits arrays without test arrays, and refuses class numbers that are far apart") {
  const auto three = [](std::size_t i) { return static_cast<std::int64_t>(i % 3); };
  check_cases({
      {"plain.npz",
       arrays("plain.npz", three),
       true,
       {"validation: {split: 0.2}", "32 samples for training, 8 held out"}},
      {"CAPITAL.NPZ", arrays("CAPITAL.NPZ", three), true, {"validation: {split: 0.2}"}},
      {"folder",
       [](const Folder& folder) {
         folder.write("folder/X.NPY", npy("<f4", "(40, 5)", floats(200, 2)));
         folder.write("folder/Y.NPY", npy("<f4", "(40,)", floats(40, 3)));
       },
       true,
       {"validation: {split: 0.2}"}},
      {"tested.npz",
       [](const Folder& folder) {
         folder.write("tested.npz", zip({{"x_train.npy", npy("<f4", "(40, 5)", floats(200, 2))},
                                         {"y_train.npy", npy("<f4", "(40,)", floats(40, 4))},
                                         {"x_test.npy", npy("<f4", "(10, 5)", floats(50, 5))},
                                         {"y_test.npy", npy("<f4", "(10,)", floats(10, 6))}}));
       },
       true,
       {"validation: {path: tested.npz}", "40 samples for training, 10 held out"}},
      {"ids.npz",
       arrays("ids.npz", [](std::size_t i) { return static_cast<std::int64_t>(i % 4) * 500'000'000; }),
       true,
       {"mean_squared_error"}},
      {"tokens",
       [](const Folder& folder) {
         const auto id = [](std::size_t i) { return static_cast<std::int64_t>(i * 7919 % 3'000'000'000); };
         folder.write("tokens/x.npy", npy("<i8", "(40, 6)", numbers(240, id)));
         folder.write("tokens/y.npy", npy("<i8", "(40,)", numbers(40, [](std::size_t i) { return i % 2; })));
       },
       true,
       {"classes: 2"}},
      {"hashes.npz",
       arrays("hashes.npz", [](std::size_t i) { return static_cast<std::int64_t>(i) * 200'000'000'000'000'000; }),
       false,
       {"y has values up to 7.8e+18, whose squared errors are too large"}},
      {"zeros.npz", arrays("zeros.npz", [](std::size_t) { return 0; }), false, {"all targets are the class 0"}},
      {"far.npz",
       arrays("far.npz", [](std::size_t i) { return static_cast<std::int64_t>(i % 2) * 1'000'000; }),
       false,
       {"the largest class is 1000000, but there are only 40 samples", "numpy.unique"},
       {"--targets", "classes"}},
  });
}

TEST_CASE("init leaves no file if one of its files cannot be written") {
  const Folder folder;
  images("photos", {"a", "bb"}, 9)(folder);
  fs::create_directories(folder / "out/trainctl.schema.json");  // a folder at the place of the last file
  const Finished made = trainctl(folder, {"init", "photos", "--out", "out", "--force"});
  CHECK(made.code == 6);
  CHECK(contains(made.errors, "out/trainctl.schema.json"));
  CHECK(contains(made.errors, "--out DIR"));
  const Finished json = trainctl(folder, {"init", "photos", "--out", "out", "--force", "--json"});
  CHECK(Json::parse(json.out)["errors"][0]["file"] == "out/trainctl.schema.json");
  int files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder / "out")) ++files;
  CHECK(files == 1);
}

}  // namespace trainctl::test::init_kinds_test
