// Tests data files that are not regular files, that fail while they are read, or that change: each causes one clear
// error, never a hang, a signal or wrong values.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/failing_calls.h"
#include "test/support/files.h"
#include "test/support/images.h"
#include "test/support/records.h"

namespace trainctl::test::hostile_files_test {
namespace {

// Reads an epoch of training data and the validation split. Returns the text of a data error, "no error", or the text
// of another error with a prefix.
std::string error_of(const std::string& yaml) {
  try {
    const Data data(data_options(yaml), 1);
    const auto source = data.training(4, {}, {1, 0, 0});
    while (!source->next().last_of_epoch) {
    }
    if (!data.has(SplitKind::validation)) return "no error";
    const auto validation = data.evaluation(SplitKind::validation, 4, {});
    while (!validation->next().last_of_epoch) {
    }
  } catch (const Error& error) {
    return error.kind() == ErrorKind::data ? error.what() : std::string("another kind: ") + error.what();
  } catch (const std::exception& error) {
    return std::string("internal error: ") + error.what();
  }
  return "no error";
}

void check_error(const std::string& yaml, const std::vector<std::string>& words) {
  const std::string text = error_of(yaml);
  INFO(text);
  for (const std::string& word : words) CHECK(text.find(word) != std::string::npos);
  CHECK(text.find("internal error") == std::string::npos);
  CHECK(text.find("another kind") == std::string::npos);
}

// Calls error_of() as a user other than root, since root may read everything; "" if the user cannot be changed.
std::string error_as_other_user(const std::string& yaml) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const bool other = geteuid() != 0 || setresuid(65534, 65534, 65534) == 0;
    const std::string text = other ? error_of(yaml) : "";
    if (write(ends[1], text.data(), text.size()) < 0) _exit(1);
    _exit(0);
  }
  close(ends[1]);
  std::string text(65536, '\0');
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, read(ends[0], text.data(), text.size()))));
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return text;
}

std::string tiny_x() { return npy("|u1", "(8, 2)", random_bytes(16, 1)); }
std::string tiny_y() { return npy("|u1", "(8,)", std::string("\0\1\0\1\0\1\0\1", 8)); }
std::string tiny_png(unsigned seed) { return png(4, 4, 2, random_bytes(48, seed)); }

// Configs of each kind of data set that read `path`; their other files are good.
std::vector<std::string> configs_with(const TempFolder& folder, const std::string& path) {
  write_file(folder / "good/y.npy", tiny_y());
  write_file(folder / "good/labels", idx(8, {8}, std::string("\0\1\0\1\0\1\0\1", 8)));
  return {format("{{dataset: npy, x: {}, y: {}}}", path, folder / "good/y.npy"),
          format("{{dataset: npy, path: {}}}", path),
          format("{{dataset: idx, images: {}, labels: {}}}", path, folder / "good/labels"),
          format("{{dataset: idx, path: {}}}", path),
          format("{{dataset: image_folder, path: {}}}", path),
          format("{{dataset: csv, path: {}}}", path),
          format("{{dataset: cifar10, path: {}}}", path),
          format("{{dataset: tfrecord, path: {}}}", path),
          format("{{dataset: webdataset, path: {}}}", path)};
}

}  // namespace

TEST_CASE("data that is not a regular file is refused immediately") {
  const TempFolder folder;
  const std::string pipe = folder / "pipe", loop = folder / "loop", long_name = folder / std::string(300, 'x');
  REQUIRE(mkfifo(pipe.c_str(), 0644) == 0);
  REQUIRE(symlink("loop", loop.c_str()) == 0);
  for (const std::string& path : {pipe, loop, long_name, std::string("/dev/zero"), std::string("/dev/null")}) {
    for (const std::string& yaml : configs_with(folder, path)) {
      INFO(yaml);
      check_error(yaml, {path});
    }
  }
}

TEST_CASE("a pipe, a device or a broken link among images is an error that names it, or is skipped") {
  for (const char* kind : {"pipe", "device", "loop", "dangling", "empty", "folder"}) {
    const TempFolder folder;
    write_file(folder / "a/1.png", tiny_png(1));
    write_file(folder / "b/1.png", tiny_png(2));
    const std::string bad = folder / "a/0.png", what = kind;
    if (what == "pipe") REQUIRE(mkfifo(bad.c_str(), 0644) == 0);
    if (what == "device") REQUIRE(symlink("/dev/zero", bad.c_str()) == 0);
    if (what == "loop") REQUIRE(symlink("0.png", bad.c_str()) == 0);
    if (what == "dangling") REQUIRE(symlink("nothing", bad.c_str()) == 0);
    if (what == "empty") write_file(bad, "");
    if (what == "folder") REQUIRE(symlink("../b", bad.c_str()) == 0);
    INFO(kind);
    const std::string base = format("dataset: image_folder, path: {}", folder.text());
    check_error("{" + base + "}", {"a/0.png", "on_error: skip"});
    check_error("{" + base + ", on_error: skip}", {"no error"});
  }
  const TempFolder folder;
  write_file(folder / "a/1.png", tiny_png(1));
  REQUIRE(symlink("b", (folder / "b").c_str()) == 0);
  check_error(format("{{dataset: image_folder, path: {}}}", folder.text()), {"/b", "symbolic link"});
}

TEST_CASE("the error for data without read permission names it") {
  const TempFolder folder;
  write_file(folder / "closed/x.npy", tiny_x());
  write_file(folder / "closed/y.npy", tiny_y());
  write_file(folder / "images/a/1.png", tiny_png(1));
  write_file(folder / "images/closed/1.png", tiny_png(2));
  write_file(folder / "file.npy", tiny_x());
  for (const char* name : {"closed", "images/closed", "file.npy"}) REQUIRE(chmod((folder / name).c_str(), 0) == 0);
  std::vector<std::string> configs = configs_with(folder, folder / "closed/x.npy");
  configs.push_back(format("{{dataset: npy, path: {}}}", folder / "closed"));
  configs.push_back(format("{{dataset: idx, path: {}}}", folder / "closed"));
  configs.push_back(format("{{dataset: image_folder, path: {}}}", folder / "closed"));
  configs.push_back(format("{{dataset: image_folder, path: {}}}", folder / "images"));
  configs.push_back(format("{{dataset: npy, x: {}, y: {}}}", folder / "file.npy", folder / "good/y.npy"));
  for (const std::string& yaml : configs) {
    const std::string text = error_as_other_user(yaml);
    if (text.empty()) {
      WARN("skipped: this process cannot become another user");
      break;
    }
    INFO(yaml << "\n" << text);
    CHECK(text.find("Permission denied") != std::string::npos);
    CHECK(text.find(folder.text()) == 0);
  }
  for (const char* name : {"closed", "images/closed"}) chmod((folder / name).c_str(), 0755);
}

TEST_CASE("an array file that becomes shorter while it is used is an error, unless it is in memory") {
  const TempFolder folder;
  const std::string x = folder / "x.npy", y = folder / "y.npy";
  constexpr std::int64_t samples = 4096, values = 5120;  // 84 MB of float32, more than is kept in memory
  write_file(x, npy("<f4", format("({}, {})", samples, values), ""));
  const auto header = static_cast<std::int64_t>(std::filesystem::file_size(x));
  REQUIRE(truncate(x.c_str(), header + samples * values * 4) == 0);
  write_file(y, npy("|u1", format("({},)", samples), std::string(samples, '\1')));
  const Data data(data_options(format("{{dataset: npy, path: {}, shuffle: false, workers: 0}}", folder.text())), 1);
  const auto source = data.training(1024, {}, {1, 0, 0});
  CHECK(source->next().inputs[0].as<float>()[0] == 0);
  REQUIRE(truncate(x.c_str(), header + 2000 * values * 4) == 0);
  try {
    source->next();
    source->next();
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    CHECK(std::string(error.what()).find("x.npy: has become shorter") != std::string::npos);
  }

  write_file(folder / "small/x.npy", tiny_x());
  write_file(folder / "small/y.npy", tiny_y());
  const Data small(data_options(format("{{dataset: npy, path: {}}}", folder / "small")), 1);
  const auto of_small = small.training(4, {}, {1, 0, 0});
  of_small->next();
  REQUIRE(truncate((folder / "small/x.npy").c_str(), 0) == 0);
  REQUIRE(truncate((folder / "small/y.npy").c_str(), 0) == 0);
  CHECK(of_small->next().count == 4);
}

TEST_CASE("large arrays that are not kept in memory have the values of their file") {
  const TempFolder folder;
  constexpr std::int64_t samples = 3000, values = 6000;
  std::vector<float> x(samples * values);
  std::mt19937 random(3);
  for (float& value : x) value = static_cast<float>(random()) / 1e9f;
  write_file(folder / "x.npy", npy("<f4", format("({}, {})", samples, values), raw(x)));
  write_file(folder / "y.npy", npy("|u1", format("({},)", samples), std::string(samples, '\1')));
  const Data data(data_options(format("{{dataset: npy, path: {}}}", folder.text())), 1);
  const auto source = data.training(64, {}, {1, 0, 0});
  for (int k = 0; k < 5; ++k) {
    const Batch& batch = source->next();
    for (std::int64_t i = 0; i < batch.count; ++i) {
      const std::int64_t number = batch.samples.as<std::int64_t>()[i];
      REQUIRE(std::memcmp(batch.inputs[0].as<float>() + i * values, x.data() + number * values, values * 4) == 0);
    }
  }
}

TEST_CASE("every read call that fails is a data error") {
  const TempFolder folder;
  write_file(folder / "npy/x.npy", tiny_x());
  write_file(folder / "npy/y.npy", tiny_y());
  for (bool deflated : {false, true}) {
    // An archive of one array; the other array is in an .npy file.
    write_file(folder / (deflated ? "deflated.npz" : "stored.npz"), zip("x.npy", tiny_x(), deflated, false));
  }
  write_file(folder / "images.idx", idx(8, {8, 2, 2}, random_bytes(32, 1)));
  write_file(folder / "images.idx.gz", gzip(idx(8, {8, 2, 2}, random_bytes(32, 1))));
  write_file(folder / "labels.idx", idx(8, {8}, std::string("\0\1\0\1\0\1\0\1", 8)));
  for (int i = 0; i < 4; ++i) {
    write_file(folder / format("pictures/{}/{}.png", i % 2 ? "a" : "b", i), tiny_png(static_cast<unsigned>(i)));
    write_file(folder / format("pictures/{}/below/{}.jpg", i % 2 ? "a" : "b", i), jpeg(4, 4, 3, slope(4, 4, 3)));
  }
  for (int f = 1; f <= 5; ++f) write_file(folder / format("cifar/data_batch_{}.bin", f), '\1' + random_bytes(3072, 1));
  write_file(folder / "records/a.tfrecord",
             tf_record(example({{"image", bytes_feature(tiny_png(1))}, {"label", ints_feature({1})}})));
  write_file(folder / "records/a.tar", tar_member("a.png", tiny_png(1)) + tar_member("a.cls", "1") + tar_end());
  write_file(folder / "table.csv", "k,a,y\nu,1,2\nu,3,4\n");
  const std::string digits = std::string(TRAINCTL_SOURCE_DIR) + "/configs/data/digits.npz";
  for (const std::string& yaml :
       {format("{{dataset: npy, path: {}, workers: 0}}", folder / "npy"),
        format("{{dataset: npy, path: {}, workers: 0}}", digits),
        format("{{dataset: idx, images: {}, labels: {}, workers: 0}}", folder / "images.idx", folder / "labels.idx"),
        format("{{dataset: idx, images: {}, labels: {}, workers: 0}}", folder / "images.idx.gz", folder / "labels.idx"),
        format("{{dataset: cifar10, path: {}, workers: 0}}", folder / "cifar"),
        format("{{dataset: csv, path: {}, workers: 0}}", folder / "table.csv"),
        format("{{dataset: tfrecord, path: {}, workers: 0}}", folder / "records"),
        format("{{dataset: webdataset, path: '{}', workers: 0}}", folder / "records/*.tar"),
        format("{{dataset: image_folder, path: {}, workers: 0}}", folder / "pictures")}) {
    for (auto* fail : {fail_pread, fail_readdir}) {
      fail(0);
      REQUIRE(error_of(yaml) == "no error");
      const int calls = fail(0);
      INFO(yaml << " " << calls << " calls");
      bool lists_folder = false;
      for (const char* word : {"image_folder", "/npy,", "tfrecord", "webdataset"}) {
        lists_folder = lists_folder || yaml.find(word) != std::string::npos;
      }
      CHECK((calls > 0) == (fail == fail_pread || lists_folder));
      for (int k = 1; k <= calls; ++k) {
        fail(k);
        const std::string text = error_of(yaml);
        INFO("call " << k << ": " << text);
        CHECK(text.find("Input/output error") != std::string::npos);
        CHECK(text[0] == '/');
      }
      fail(0);
    }
  }
}

TEST_CASE("with on_error: skip a bad first image is skipped, and no error advises to set on_error") {
  const TempFolder folder;
  write_file(folder / "a/1.jpg", "\xff\xd8\xff" + random_bytes(100, 1));
  write_file(folder / "a/2.png", tiny_png(1));
  write_file(folder / "b/1.png", tiny_png(2));
  const std::string base = format("dataset: image_folder, path: {}, shuffle: false", folder.text());
  check_error("{" + base + "}", {"a/1.jpg", "set `on_error: skip`"});
  for (const char* more : {"", ", transform: [{normalize: measured}]"}) {
    const Data data(data_options("{" + base + ", on_error: skip" + more + "}"), 1);
    CHECK(data.info().inputs[0].sample == Shape{4, 4, 3});
    const auto source = data.training(3, {}, {1, 0, 0});
    const Batch& batch = source->next();
    CHECK(batch.weights.as<float>()[0] == 0);
    CHECK(batch.weights.as<float>()[1] == 1);
    CHECK(batch.weights.as<float>()[2] == 1);
  }
  // The statistics are those of the good images.
  const auto measured = [&] {
    return Data(data_options("{" + base + ", on_error: skip, transform: [{normalize: measured}]}"), 1).measured()[0];
  };
  const Statistics with_bad = measured();
  std::filesystem::remove(folder / "a/1.jpg");
  CHECK(measured().mean == with_bad.mean);
  CHECK(measured().stddev == with_bad.stddev);
  for (const char* name : {"a/2.png", "b/1.png"}) write_file(folder / name, "none");
  const std::string text = error_of("{" + base + ", on_error: skip}");
  INFO(text);
  CHECK(text.find("none of its 2 images can be read") != std::string::npos);
  CHECK(text.find("on_error") == std::string::npos);
}

TEST_CASE("messages name the formats of images that cannot be read") {
  const TempFolder folder;
  write_file(folder / "a/1.tif", std::string("II*\0....", 8));
  write_file(folder / "b/1.png", tiny_png(1));
  const std::string yaml = format("{{dataset: image_folder, path: {}}}", folder.text());
  check_error(yaml, {"/a: has no JPEG, PNG, WebP, GIF or BMP images: 1 image is not read (.tif)", "convert"});
  write_file(folder / "a/2.png", tiny_png(2));
  write_file(folder / "b/x.avif", "....ftypavif");
  const Data data(data_options(yaml), 1);
  REQUIRE(data.info().warnings.size() == 1);
  CHECK(data.info().warnings[0].find("2 images are not read (.avif, .tif)") != std::string::npos);
  const std::pair<std::string, const char*> others[] = {
      {std::string("II*\0....", 8), "TIFF"},   {std::string("MM\0*....", 8), "TIFF"},
      {"GIF89a....", "decoded as GIF"},        {"BM......", "is not a JPEG, PNG, WebP, GIF or BMP image"},
      {"RIFF....WEBPVP8 ", "decoded as WebP"}, {"what is this", "is not a JPEG, PNG, WebP, GIF or BMP image"}};
  for (const auto& [bytes, name] : others) {
    write_file(folder / "a/2.png", bytes);
    check_error(yaml, {"a/2.png", name});
  }
}

}  // namespace trainctl::test::hostile_files_test
