// Tests that bad input causes one error, of the right kind and with the name of the file, and that the memory used is
// bounded even if a header claims huge sizes.
#include "io/datasets/arrays/npy.h"
#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/files.h"
#include "test/support/images.h"

namespace trainctl::test::malformed_test {
namespace {

// Opens the config's data and reads an epoch of it. Returns the error's text, or "no error".
std::string error_of(const std::string& yaml, ErrorKind kind = ErrorKind::data) {
  try {
    const Data data(data_options(yaml), 1);
    const auto source = data.training(4, {}, {1, 0, 0});
    while (!source->next().last_of_epoch) {
    }
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  return "no error";
}

void check_error(const std::string& yaml, const std::vector<std::string>& words, ErrorKind kind = ErrorKind::data) {
  const std::string text = error_of(yaml, kind);
  for (const std::string& word : words) {
    INFO(text);
    CHECK(text.find(word) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("invalid idx files are refused") {
  const TempFolder folder;
  const std::string good_images = idx(8, {4, 2, 2}, random_bytes(16, 1)),
                    good_labels = idx(8, {4}, std::string("\0\1\2\1", 4));
  write_file(folder / "labels", good_labels);
  const auto with_images = [&](const std::string& bytes, const std::vector<std::string>& words) {
    write_file(folder / "images", bytes);
    check_error(format("{{dataset: idx, images: {}, labels: {}}}", folder / "images", folder / "labels"), words);
  };
  with_images(good_images, {"no error"});
  with_images(good_images.substr(0, 25), {"images", "truncated"});
  with_images(good_images + "x", {"images", "too long"});
  with_images(good_images.substr(0, 10), {"images", "truncated within its header"});
  with_images("", {"images", "empty"});
  with_images("\x89PNG....", {"images", "not an IDX file"});
  with_images(idx(8, {4000000000u, 2000000000u, 2000000000u}, "abc"), {"images", "impossible shape"});
  with_images(gzip(idx(8, {4000000000u, 1000, 1000}, "abc")), {"images", "truncated"});
  with_images(gzip(good_images).substr(0, 30), {"images", "truncated"});
  with_images(gzip(good_images + "more"), {"images", "more than"});
  std::string flipped = gzip(good_images);
  flipped[flipped.size() - 6] ^= 1;  // changes the checksum
  with_images(flipped, {"images", "damaged"});
  with_images(idx(8, {5, 2, 2}, random_bytes(20, 1)), {"labels", "5 samples"});
  with_images(idx(8, {0, 2, 2}, ""), {"images", "no samples"});

  write_file(folder / "images", good_images);
  check_error(format("{{dataset: idx, images: {}, labels: {}, classes: 2}}", folder / "images", folder / "labels"),
              {"labels", "sample 2 has label 2"});
  check_error(format("{{dataset: idx, images: {}, labels: {}}}", folder / "images", folder / "nothing"),
              {"nothing", "TRAINCTL_DATA"});
  check_error(format("{{dataset: idx, path: {}}}", folder / "nowhere"), {"nowhere", "TRAINCTL_DATA"});
  check_error("{dataset: idx}", {"path"}, ErrorKind::config);
}

TEST_CASE("invalid npy and npz files are refused") {
  const TempFolder folder;
  write_file(folder / "y.npy", npy("|u1", "(2,)", std::string("\0\1", 2)));
  const auto with_x = [&](const std::string& bytes, const std::vector<std::string>& words) {
    write_file(folder / "x.npy", bytes);
    check_error(format("{{dataset: npy, path: {}}}", folder.text()), words);
  };
  const std::string values = random_bytes(16, 1);
  with_x(npy("<f4", "(2, 2)", raw(std::vector<float>{1, 2, 3, 4})), {"no error"});
  with_x(npy("<f4", "(2, 2)", values.substr(1)), {"x.npy", "15 bytes"});
  with_x(npy("<f4", "(2, 2)", values.substr(1), "True"), {"x.npy", "15 bytes"});
  with_x(npy("<c8", "(2, 1)", values), {"x.npy", "c8"});
  with_x(npy("<f4", "(2, -2)", values), {"x.npy", "shape"});
  with_x(npy("<f4", "(2000000000, 2000000000, 2000000000)", values), {"x.npy", "impossible shape"});
  with_x(npy("<f4", "(3, 2)", values + values.substr(8)), {"y.npy", "3 samples"});
  with_x("garbage", {"x.npy", "not an .npy"});
  with_x(npy("<f4", "(2, 2)", values).substr(0, 40), {"x.npy", "truncated"});
  write_file(folder / "a.npz", std::string("PK\x05\x06", 4) + std::string(6, '\xff') + std::string(12, '\x7f'));
  check_error(format("{{dataset: npy, path: {}}}", folder / "a.npz"), {"a.npz", "zip"});
  write_file(folder / "a.npz", random_bytes(500, 3));
  check_error(format("{{dataset: npy, path: {}}}", folder / "a.npz"), {"a.npz", "zip"});
}

TEST_CASE("reading a real archive with changed bytes never crashes") {
  const TempFolder folder;
  const std::string whole = read_whole(std::string(TRAINCTL_SOURCE_DIR) + "/configs/data/digits.npz");
  REQUIRE(whole.size() > 1000);
  std::mt19937 random(5);
  int errors = 0;
  for (int i = 0; i < 120; ++i) {
    std::string bytes = whole;
    if (i % 4 == 0) bytes.resize(random() % bytes.size() + 1);
    const std::size_t at =
        i % 2 ? bytes.size() - 1 - random() % std::min<std::size_t>(400, bytes.size()) : random() % bytes.size();
    bytes[at] = static_cast<char>(random());
    write_file(folder / "a.npz", bytes);
    const std::string text = error_of(format("{{dataset: npy, path: {}}}", folder / "a.npz"));
    errors += text != "no error";
  }
  CHECK(errors > 60);
}

TEST_CASE("invalid image folders are refused") {
  const TempFolder folder;
  check_error(format("{{dataset: image_folder, path: {}}}", folder / "nowhere"), {"nowhere", "TRAINCTL_DATA"});
  check_error(format("{{dataset: image_folder, path: {}}}", folder.text()), {"no class folders"});
  write_file(folder / "cat/notes.txt", "no image");
  check_error(format("{{dataset: image_folder, path: {}}}", folder.text()),
              {"cat", "has no JPEG, PNG, WebP, GIF or BMP images"});
  write_file(folder / "cat/a.jpg", "no image");
  check_error(format("{{dataset: image_folder, path: {}}}", folder.text()),
              {"a.jpg", "is not a JPEG, PNG, WebP, GIF or BMP image"});
  write_file(folder / "cat/a.jpg", "\xff\xd8\xff" + random_bytes(300, 1));
  check_error(format("{{dataset: image_folder, path: {}}}", folder.text()), {"a.jpg", "JPEG"});
  write_file(folder / "cat/a.jpg", "\x89PNG\r\n\x1a\n" + random_bytes(300, 1));
  check_error(format("{{dataset: image_folder, path: {}}}", folder.text()), {"a.jpg", "PNG"});
}

TEST_CASE("invalid keys of the data section are found when the config is read") {
  for (const char* yaml : {
           "{dataset: mnist}",
           "{dataset: idx, paht: x}",
           "{dataset: idx, path: a, validation: {x: b}}",
           "{dataset: idx, path: a, validation: {split: 1.5}}",
           "{dataset: idx, path: a, validation: {split: 0.1, path: b}}",
           "{dataset: idx, path: a, validation: {stratify: true}}",
           "{dataset: idx, path: a, transform: [normalize]}",
           "{dataset: idx, path: a, transform: [{normalize: {mean: 1}}]}",
           "{dataset: idx, path: a, transform: [{normalize: {mean: 1, std: 0}}]}",
           "{dataset: idx, path: a, transform: [{normalize: {mean: [1, 2], std: [1, 2, 3]}}]}",
           "{dataset: idx, path: a, transform: [{resize: [1, 2, 3]}]}",
           "{dataset: idx, path: a, transform: [{random_crop: 5}]}",
           "{dataset: idx, path: a, augment: [{random_flip: diagonal}]}",
           "{dataset: idx, path: a, prefetch: 0}",
           "{dataset: idx, path: a, on_error: ignore}",
       }) {
    INFO(yaml);
    CHECK_THROWS_AS(data_options(yaml), ConfigError);
  }
}

TEST_CASE("normalisation with the wrong number of channels is refused") {
  const std::string base = "dataset: synthetic, shape: [4, 4, 2], classes: 2";
  check_error("{" + base + ", transform: [{normalize: imagenet}]}", {"3 channels", "2"}, ErrorKind::config);
  check_error("{" + base + ", transform: [{normalize: {mean: [1, 2], std: 1}}, {normalize: imagenet}]}", {"channels"},
              ErrorKind::config);
  check_error("{" + base + ", transform: [{normalize: {mean: [1, 2], std: 1}}, {rescale: 2}]}", {"no error"});
}

TEST_CASE("validation data that does not fit the training data is refused before training") {
  const TempFolder folder;
  const auto write_pair = [&](const std::string& to, const std::string& x, const std::string& y) {
    write_file(folder / (to + "/x.npy"), x);
    write_file(folder / (to + "/y.npy"), y);
  };
  write_pair("train", npy("<f4", "(4, 6)", raw(std::vector<float>(24))),
             npy("|u1", "(4,)", std::string("\0\1\2\1", 4)));
  const auto with = [&](const std::string& x, const std::string& y) {
    write_pair("validation", x, y);
    return format("{{dataset: npy, path: {}, validation: {{path: {}}}}}", folder / "train", folder / "validation");
  };
  const std::string labels = npy("|u1", "(2,)", std::string("\0\1", 2));
  const auto refused = [](const std::string& yaml, const std::vector<std::string>& words) {
    try {
      const Data data(data_options(yaml), 1);
      FAIL("no error");
    } catch (const Error& error) {
      INFO(error.what());
      CHECK(error.kind() == ErrorKind::data);
      for (const std::string& word : words) CHECK(std::string(error.what()).find(word) != std::string::npos);
    }
  };
  refused(with(npy("<f4", "(2, 5)", raw(std::vector<float>(10))), labels), {"validation/x.npy", "shape 5", "have 6"});
  refused(with(npy("<f4", "(2, 3, 2)", raw(std::vector<float>(12))), npy("|u1", "(2,)", std::string("\0\5", 2))),
          {"validation/y.npy", "class 5"});
  refused(with(npy("<f4", "(0, 6)", ""), labels), {"validation/x.npy", "no samples"});
  refused(with(npy("<f4", "(2, 6)", raw(std::vector<float>(12))), npy("<f4", "(2,)", raw(std::vector<float>(2)))),
          {"validation/y.npy", "class number"});
  refused(with(npy("<f4", "(2, 6)", raw(std::vector<float>(12))), npy("<f4", "(2, 0)", "")),
          {"validation/y.npy", "no values"});
  refused(with("", labels), {"validation/x.npy", "empty"});

  write_file(folder / "images/train/a/1.png", png(4, 4, 2, random_bytes(48, 1)));
  write_file(folder / "images/train/b/1.png", png(4, 4, 2, random_bytes(48, 2)));
  write_file(folder / "images/validation/a/1.png", png(3, 4, 2, random_bytes(36, 2)));
  const std::string base = format("dataset: image_folder, path: {}, validation: {{path: {}}}", folder / "images/train",
                                  folder / "images/validation");
  refused("{" + base + "}", {"validation/a/1.png", "3x4x3", "4x4x3", "resize"});
  refused("{" + base + ", transform: [{center_crop: 4}]}", {"validation/a/1.png", "crop"});
  CHECK(error_of("{" + base + ", transform: [{resize: [5, 5]}]}") == "no error");
  std::filesystem::create_directories(folder / "nothing");
  refused(format("{{dataset: image_folder, path: {}, validation: {{path: {}}}}}", folder / "images/train",
                 folder / "nothing"),
          {"nothing", "no class folders"});
}

TEST_CASE("archives that claim more data than they hold are refused in bounded memory") {
  const TempFolder folder;
  const auto little = [](std::uint64_t value, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += static_cast<char>(value >> 8 * i);
    return text;
  };
  const auto refused = [&](const std::string& bytes, const char* word) {
    write_file(folder / "a.npz", bytes);
    try {
      read_npz(folder / "a.npz", "x");
      FAIL("no error");
    } catch (const Error& error) {
      INFO(error.what());
      CHECK(error.kind() == ErrorKind::data);
      CHECK(std::string(error.what()).find("a.npz") != std::string::npos);
      CHECK(std::string(error.what()).find(word) != std::string::npos);
    }
  };
  // A 64-bit end record with 2^62 members.
  const std::string end64 = little(0x06064b50, 4) + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 4) +
                            little(0, 4) + little(1ull << 62, 8) + little(1ull << 62, 8) + little(0, 8) + little(0, 8);
  const std::string end = little(0x07064b50, 4) + little(0, 4) + little(0, 8) + little(1, 4) + little(0x06054b50, 4) +
                          std::string(12, '\xff') + little(0, 4) + little(0, 2);
  refused(end64 + end, "members");
  // Headers that claim an exabyte.
  for (const char* shape : {"(1000000000000, 1000000)", "(4611686018427387904, 4)", "(9223372036854775807,)"}) {
    for (bool deflated : {false, true}) refused(zip("x.npy", npy("|u1", shape, "abc"), deflated, true), "header");
  }
  // A stream that ends after a megabyte, although the header and the directory both claim a terabyte.
  std::string archive = zip("x.npy", npy("|u1", "(1000000000000,)", std::string(1 << 20, '\0')), true, true);
  const std::string size = little((1 << 20) + 128, 8), claimed_size = little(1000000000000 + 128, 8);
  int replaced = 0;
  for (std::size_t at = archive.find(size); at != std::string::npos; at = archive.find(size, at + 8), ++replaced) {
    archive.replace(at, 8, claimed_size);
  }
  REQUIRE(replaced == 2);
  refused(archive, "truncated");
}

}  // namespace trainctl::test::malformed_test
