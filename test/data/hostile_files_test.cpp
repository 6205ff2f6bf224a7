// Files that are not what a data set is made of, fail while they are read, or change: one clear error each, never a
// wait, a signal or a silent change.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/datasets/npy.h"
#include "io/loader/data.h"
#include "test/catch.h"
#include "test/data/failing_calls.h"
#include "test/data/files.h"
#include "test/data/images.h"

using namespace trainctl;
using namespace trainctl::test;

namespace {

// Reads an epoch of training and the validation part; the text of an error of the data, "no error", or another one's.
std::string error_of(const std::string& yaml) {
  try {
    const Data data(data_options(yaml), 1);
    const auto source = data.training(4, {}, {1, 0, 0});
    while (!source->next().last_of_epoch) {
    }
    if (!data.has(PartKind::validation)) return "no error";
    const auto validation = data.evaluation(PartKind::validation, 4, {});
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

// The same as another user than root, who may read everything; "" where there is none.
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

// Configs of each kind of data set whose one file is `path`; the others are good.
std::vector<std::string> configs_with(const TempFolder& folder, const std::string& path) {
  write_file(folder / "good/y.npy", tiny_y());
  write_file(folder / "good/labels", idx(8, {8}, std::string("\0\1\0\1\0\1\0\1", 8)));
  return {format("{{dataset: npy, x: {}, y: {}}}", path, folder / "good/y.npy"),
          format("{{dataset: npy, path: {}}}", path),
          format("{{dataset: idx, images: {}, labels: {}}}", path, folder / "good/labels"),
          format("{{dataset: idx, path: {}}}", path), format("{{dataset: image_folder, path: {}}}", path)};
}

std::string fingerprint(const std::string& yaml) { return Data(data_options(yaml), 1).info().fingerprint; }

void set_time(const std::string& path, std::int64_t seconds) {
  const timespec times[2] = {{seconds, 0}, {seconds, 0}};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

}  // namespace

TEST_CASE("data that is no regular file is refused at once") {
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

TEST_CASE("a pipe, a device or a broken link among images stops the run with its name, or is skipped") {
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

TEST_CASE("data without permission is named") {
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
      WARN("skipped: no other user can be taken on here");
      break;
    }
    INFO(yaml << "\n" << text);
    CHECK(text.find("Permission denied") != std::string::npos);
    CHECK(text.find(folder.text()) == 0);
  }
  for (const char* name : {"closed", "images/closed"}) chmod((folder / name).c_str(), 0755);
}

TEST_CASE("an array that becomes shorter while it is used is an error, or has been read already") {
  const TempFolder folder;
  const std::string x = folder / "x.npy", y = folder / "y.npy";
  constexpr std::int64_t samples = 4096, values = 5120;  // 84 MB of float32, more than is kept in memory
  write_file(x, npy("<f4", format("({}, {})", samples, values), ""));
  const auto header = static_cast<std::int64_t>(std::filesystem::file_size(x));
  REQUIRE(truncate(x.c_str(), header + samples * values * 4) == 0);
  write_file(y, npy("|u1", format("({},)", samples), std::string(samples, '\1')));
  const Data data(data_options(format("{{dataset: npy, path: {}, shuffle: false, workers: 0}}", folder.text())), 1);
  const auto source = data.training(1024, {}, {1, 0, 0});
  CHECK(source->next().inputs.as<float>()[0] == 0);
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

TEST_CASE("large arrays that stay in their file give the values that are in it") {
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
      REQUIRE(std::memcmp(batch.inputs.as<float>() + i * values, x.data() + number * values, values * 4) == 0);
    }
  }
}

TEST_CASE("a read that fails is an error of the data at every place where it may fail") {
  const TempFolder folder;
  write_file(folder / "npy/x.npy", tiny_x());
  write_file(folder / "npy/y.npy", tiny_y());
  for (bool deflated : {false, true}) {
    // An archive of one array; the other one stands in an .npy file.
    write_file(folder / (deflated ? "deflated.npz" : "stored.npz"), zip("x.npy", tiny_x(), deflated, false));
  }
  write_file(folder / "images.idx", idx(8, {8, 2, 2}, random_bytes(32, 1)));
  write_file(folder / "images.idx.gz", gzip(idx(8, {8, 2, 2}, random_bytes(32, 1))));
  write_file(folder / "labels.idx", idx(8, {8}, std::string("\0\1\0\1\0\1\0\1", 8)));
  for (int i = 0; i < 4; ++i) {
    write_file(folder / format("pictures/{}/{}.png", i % 2 ? "a" : "b", i), tiny_png(static_cast<unsigned>(i)));
    write_file(folder / format("pictures/{}/below/{}.jpg", i % 2 ? "a" : "b", i), jpeg(4, 4, 3, slope(4, 4, 3)));
  }
  const std::string digits = std::string(TRAINCTL_SOURCE_DIR) + "/configs/data/digits.npz";
  for (const std::string& yaml :
       {format("{{dataset: npy, path: {}, workers: 0}}", folder / "npy"),
        format("{{dataset: npy, path: {}, workers: 0}}", digits),
        format("{{dataset: idx, images: {}, labels: {}, workers: 0}}", folder / "images.idx", folder / "labels.idx"),
        format("{{dataset: idx, images: {}, labels: {}, workers: 0}}", folder / "images.idx.gz", folder / "labels.idx"),
        format("{{dataset: image_folder, path: {}, workers: 0}}", folder / "pictures")}) {
    for (auto* fail : {fail_pread, fail_readdir}) {
      fail(0);
      REQUIRE(error_of(yaml) == "no error");
      const int calls = fail(0);
      INFO(yaml << " " << calls << " calls");
      CHECK((calls > 0) == (fail == fail_pread || yaml.find("image_folder") != std::string::npos));
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

TEST_CASE("the fingerprint follows the content, not names of folders and times") {
  const TempFolder folder;
  // Three kinds of data sets; of each a copy elsewhere, and one with a byte changed, of the same size and time.
  const auto write_all = [&](const std::string& to, bool changed) {
    std::string x = tiny_x();
    if (changed) x[x.size() - 3] ^= 1;
    write_file(folder / (to + "/npy/x.npy"), x);
    write_file(folder / (to + "/npy/y.npy"), tiny_y());
    std::string images = random_bytes(32, 7);
    if (changed) images[20] ^= 1;
    write_file(folder / (to + "/images.gz"), gzip(idx(8, {8, 2, 2}, images)));
    write_file(folder / (to + "/labels"), idx(8, {8}, std::string("\0\1\0\1\0\1\0\1", 8)));
    write_file(folder / (to + "/pictures/a/1.png"), tiny_png(1));
    std::string pixels = random_bytes(48, 2);
    if (changed) pixels[20] ^= 1;
    write_file(folder / (to + "/pictures/b/1.png"), png(4, 4, 2, pixels));
    for (const char* file : {"/npy/x.npy", "/npy/y.npy", "/images.gz", "/labels", "/pictures/b/1.png"}) {
      set_time(folder / (to + file), to == "copy" ? 2'000'000'000 : 1'000'000'000);
    }
  };
  const auto prints = [&](const std::string& of) {
    return std::vector<std::string>{
        fingerprint(format("{{dataset: npy, path: {}}}", folder / (of + "/npy"))),
        fingerprint(format("{{dataset: idx, images: {}, labels: {}}}", folder / (of + "/images.gz"),
                           folder / (of + "/labels"))),
        fingerprint(format("{{dataset: image_folder, path: {}}}", folder / (of + "/pictures")))};
  };
  write_all("one", false);
  write_all("copy", false);
  write_all("other", true);
  const auto one = prints("one"), copy = prints("copy"), other = prints("other");
  CHECK(one == copy);
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(one[i] != other[i]);
  // A renamed image comes at another place, one in another class has another label.
  std::filesystem::rename(folder / "copy/pictures/b/1.png", folder / "copy/pictures/b/2.png");
  const std::string renamed = prints("copy")[2];
  CHECK(renamed != one[2]);
}

TEST_CASE("the fingerprint of a large array reads a bounded part of it, the same every time") {
  const TempFolder folder;
  constexpr std::int64_t samples = 512, values = 1 << 20;  // 512 MiB, sparse
  write_file(folder / "x.npy", npy("|u1", format("({}, {})", samples, values), ""));
  const auto header = static_cast<std::int64_t>(std::filesystem::file_size(folder / "x.npy"));
  REQUIRE(truncate((folder / "x.npy").c_str(), header + samples * values) == 0);
  write_file(folder / "y.npy", npy("|u1", format("({},)", samples), std::string(samples, '\1')));
  const std::string yaml = format("{{dataset: npy, path: {}}}", folder.text());
  fail_pread(0);
  const std::string before = fingerprint(yaml);
  CHECK(fail_pread(0) < 400);
  CHECK(fingerprint(yaml) == before);
  // Other bytes all over are noticed, though not all are read.
  const int file = open((folder / "x.npy").c_str(), O_WRONLY | O_CLOEXEC);
  for (std::int64_t at = header; at < header + samples * values; at += 256 << 10)
    REQUIRE(pwrite(file, "!", 1, at) == 1);
  close(file);
  CHECK(fingerprint(yaml) != before);
}

TEST_CASE("with on_error: skip a bad first image is skipped, and no advice asks for what is set") {
  const TempFolder folder;
  write_file(folder / "a/1.jpg", "\xff\xd8\xff" + random_bytes(100, 1));
  write_file(folder / "a/2.png", tiny_png(1));
  write_file(folder / "b/1.png", tiny_png(2));
  const std::string base = format("dataset: image_folder, path: {}, shuffle: false", folder.text());
  check_error("{" + base + "}", {"a/1.jpg", "set `on_error: skip`"});
  for (const char* more : {"", ", transform: [{normalize: measured}]"}) {
    const Data data(data_options("{" + base + ", on_error: skip" + more + "}"), 1);
    CHECK(data.info().sample == Shape{4, 4, 3});
    const auto source = data.training(3, {}, {1, 0, 0});
    const Batch& batch = source->next();
    CHECK(batch.weights.as<float>()[0] == 0);
    CHECK(batch.weights.as<float>()[1] == 1);
    CHECK(batch.weights.as<float>()[2] == 1);
  }
  // The statistics are those of the good ones.
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

TEST_CASE("images of other formats are named") {
  const TempFolder folder;
  write_file(folder / "a/1.tif", std::string("II*\0....", 8));
  write_file(folder / "b/1.png", tiny_png(1));
  const std::string yaml = format("{{dataset: image_folder, path: {}}}", folder.text());
  check_error(yaml, {"/a: has 1 images of formats that are not read (.tif)", ".jpg", ".png", "convert"});
  write_file(folder / "a/2.png", tiny_png(2));
  write_file(folder / "b/x.webp", "RIFF");
  const Data data(data_options(yaml), 1);
  REQUIRE(data.info().warnings.size() == 1);
  CHECK(data.info().warnings[0].find("2 images of formats that are not read (.tif, .webp)") != std::string::npos);
  const std::pair<std::string, const char*> others[] = {{std::string("II*\0....", 8), "TIFF"},
                                                        {std::string("MM\0*....", 8), "TIFF"},
                                                        {"GIF89a....", "GIF"},
                                                        {"BM......", "BMP"},
                                                        {"RIFF....WEBPVP8 ", "WebP"},
                                                        {"what is this", "neither a JPEG nor a PNG"}};
  for (const auto& [bytes, name] : others) {
    write_file(folder / "a/2.png", bytes);
    check_error(yaml, {"a/2.png", name, "PNG"});
  }
}

TEST_CASE("validation data that differs from training is refused before training") {
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

TEST_CASE("archives that claim what they do not hold are refused in bounded memory") {
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
  // A stream that ends after a megabyte, behind a header and a directory that agree on a terabyte.
  std::string lying = zip("x.npy", npy("|u1", "(1000000000000,)", std::string(1 << 20, '\0')), true, true);
  const std::string size = little((1 << 20) + 128, 8), lie = little(1000000000000 + 128, 8);
  int places = 0;
  for (std::size_t at = lying.find(size); at != std::string::npos; at = lying.find(size, at + 8), ++places) {
    lying.replace(at, 8, lie);
  }
  REQUIRE(places == 2);
  refused(lying, "truncated");
}
