// Tests fingerprints, by which a resumed run notices that its data has changed.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/failing_calls.h"
#include "test/support/files.h"
#include "test/support/images.h"
#include "test/support/records.h"

namespace trainctl::test::fingerprint_test {
namespace {

std::string tiny_x() { return npy("|u1", "(8, 2)", random_bytes(16, 1)); }
std::string tiny_y() { return npy("|u1", "(8,)", std::string("\0\1\0\1\0\1\0\1", 8)); }
std::string tiny_png(unsigned seed) { return png(4, 4, 2, random_bytes(48, seed)); }

std::string fingerprint(const std::string& yaml) { return Data(data_options(yaml), 1).info().fingerprint; }

void set_time(const std::string& path, std::int64_t seconds) {
  const timespec times[2] = {{seconds, 0}, {seconds, 0}};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

}  // namespace

TEST_CASE("the fingerprint depends on the content, not on folder names and file times") {
  const TempFolder folder;
  // Writes a data set of each kind to folder `to`. `changed` changes a byte of each, but not its size and time.
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
    std::string record = '\3' + random_bytes(3072, 3);
    if (changed) record[2000] ^= 1;
    for (int f = 1; f <= 5; ++f) write_file(folder / format("{}/cifar/data_batch_{}.bin", to, f), record);
    const std::string image = png(4, 4, 2, pixels);
    write_file(folder / (to + "/records/a.tfrecord"),
               tf_record(example({{"image", bytes_feature(image)}, {"label", ints_feature({1})}})));
    write_file(folder / (to + "/archives/a.tar"), tar_member("a.png", image) + tar_member("a.cls", "1") + tar_end());
    write_file(folder / (to + "/table.csv"), changed ? "k,y\nu,1\nu,2\n" : "k,y\nv,1\nv,2\n");
    for (const char* file : {"/npy/x.npy", "/npy/y.npy", "/images.gz", "/labels", "/pictures/b/1.png"}) {
      set_time(folder / (to + file), to == "copy" ? 2'000'000'000 : 1'000'000'000);
    }
  };
  const auto prints = [&](const std::string& of) {
    return std::vector<std::string>{
        fingerprint(format("{{dataset: npy, path: {}}}", folder / (of + "/npy"))),
        fingerprint(format("{{dataset: idx, images: {}, labels: {}}}", folder / (of + "/images.gz"),
                           folder / (of + "/labels"))),
        fingerprint(format("{{dataset: image_folder, path: {}}}", folder / (of + "/pictures"))),
        fingerprint(format("{{dataset: cifar10, path: {}}}", folder / (of + "/cifar"))),
        fingerprint(format("{{dataset: tfrecord, path: {}}}", folder / (of + "/records"))),
        fingerprint(format("{{dataset: webdataset, path: {}}}", folder / (of + "/archives"))),
        fingerprint(format("{{dataset: csv, path: {}}}", folder / (of + "/table.csv")))};
  };
  write_all("one", false);
  write_all("copy", false);
  write_all("other", true);
  const auto one = prints("one"), copy = prints("copy"), other = prints("other");
  CHECK(one == copy);
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(one[i] != other[i]);
  // Renaming an image may change the order of the samples, so it changes the fingerprint.
  std::filesystem::rename(folder / "copy/pictures/b/1.png", folder / "copy/pictures/b/2.png");
  const std::string renamed = prints("copy")[2];
  CHECK(renamed != one[2]);
}

TEST_CASE("the fingerprint of a large array reads a bounded part of it, and is the same every time") {
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
  // Changes all over the file are noticed, although not all of it is read.
  const int file = open((folder / "x.npy").c_str(), O_WRONLY | O_CLOEXEC);
  for (std::int64_t at = header; at < header + samples * values; at += 256 << 10)
    REQUIRE(pwrite(file, "!", 1, at) == 1);
  close(file);
  CHECK(fingerprint(yaml) != before);
}

}  // namespace trainctl::test::fingerprint_test
