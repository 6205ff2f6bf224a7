// Bad input: one clear error of the right kind that names the file, in bounded memory whatever a header claims.
#include "io/loader/data.h"
#include "test/catch.h"
#include "test/data/files.h"

using namespace trainctl;
using namespace trainctl::test;

namespace {

// Opens the config's data and reads an epoch of it; the error's text.
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

TEST_CASE("idx files that are wrong") {
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
  with_images("\x89PNG....", {"images", "no IDX file"});
  with_images(idx(8, {4000000000u, 2000000000u, 2000000000u}, "abc"), {"images", "impossible shape"});
  with_images(gzip(idx(8, {4000000000u, 1000, 1000}, "abc")), {"images", "truncated"});
  with_images(gzip(good_images).substr(0, 30), {"images", "truncated"});
  with_images(gzip(good_images + "more"), {"images", "more than"});
  std::string flipped = gzip(good_images);
  flipped[flipped.size() - 6] ^= 1;  // its check sum
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

TEST_CASE("npy and npz files that are wrong") {
  const TempFolder folder;
  write_file(folder / "y.npy", npy("|u1", "(2,)", std::string("\0\1", 2)));
  const auto with_x = [&](const std::string& bytes, const std::vector<std::string>& words) {
    write_file(folder / "x.npy", bytes);
    check_error(format("{{dataset: npy, path: {}}}", folder.text()), words);
  };
  const std::string values = random_bytes(16, 1);
  with_x(npy("<f4", "(2, 2)", raw(std::vector<float>{1, 2, 3, 4})), {"no error"});
  with_x(npy("<f4", "(2, 2)", values.substr(1)), {"x.npy", "15 bytes"});
  with_x(npy("<f4", "(2, 2)", values, "True"), {"x.npy", "Fortran"});
  with_x(npy("<c8", "(2, 1)", values), {"x.npy", "c8"});
  with_x(npy("<f4", "(2, -2)", values), {"x.npy", "shape"});
  with_x(npy("<f4", "(2000000000, 2000000000, 2000000000)", values), {"x.npy", "impossible shape"});
  with_x(npy("<f4", "(3, 2)", values + values.substr(8)), {"y.npy", "3 samples"});
  with_x("garbage", {"x.npy", "no .npy"});
  with_x(npy("<f4", "(2, 2)", values).substr(0, 40), {"x.npy", "truncated"});
  write_file(folder / "a.npz", std::string("PK\x05\x06", 4) + std::string(6, '\xff') + std::string(12, '\x7f'));
  check_error(format("{{dataset: npy, path: {}}}", folder / "a.npz"), {"a.npz", "zip"});
  write_file(folder / "a.npz", random_bytes(500, 3));
  check_error(format("{{dataset: npy, path: {}}}", folder / "a.npz"), {"a.npz", "zip"});
}

TEST_CASE("flipped bytes in a real archive never crash") {
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

TEST_CASE("image folders that are wrong") {
  const TempFolder folder;
  check_error(format("{{dataset: image_folder, path: {}}}", folder / "nowhere"), {"nowhere", "TRAINCTL_DATA"});
  check_error(format("{{dataset: image_folder, path: {}}}", folder.text()), {"no class folders"});
  write_file(folder / "cat/notes.txt", "no image");
  check_error(format("{{dataset: image_folder, path: {}}}", folder.text()), {"cat", "no .jpg"});
  write_file(folder / "cat/a.jpg", "no image");
  check_error(format("{{dataset: image_folder, path: {}}}", folder.text()), {"a.jpg", "neither a JPEG nor a PNG"});
  write_file(folder / "cat/a.jpg", "\xff\xd8\xff" + random_bytes(300, 1));
  check_error(format("{{dataset: image_folder, path: {}}}", folder.text()), {"a.jpg", "JPEG"});
  write_file(folder / "cat/a.jpg", "\x89PNG\r\n\x1a\n" + random_bytes(300, 1));
  check_error(format("{{dataset: image_folder, path: {}}}", folder.text()), {"a.jpg", "PNG"});
}

TEST_CASE("keys of data that are wrong are found when the config is read") {
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

TEST_CASE("normalisation of another number of channels is refused") {
  const std::string base = "dataset: synthetic, shape: [4, 4, 2], classes: 2";
  check_error("{" + base + ", transform: [{normalize: imagenet}]}", {"3 channels", "2"}, ErrorKind::config);
  check_error("{" + base + ", transform: [{normalize: {mean: [1, 2], std: 1}}, {normalize: imagenet}]}", {"channels"},
              ErrorKind::config);
  check_error("{" + base + ", transform: [{normalize: {mean: [1, 2], std: 1}}, {rescale: 2}]}", {"no error"});
}
