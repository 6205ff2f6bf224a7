// Tests that a file which differs from the memory that it was written from is found.
#include "io/checkpoint/read_back.h"

#include <random>

#include "core/base/error.h"
#include "test/catch.h"
#include "test/support/snapshots.h"

namespace trainctl::test::read_back_test {
namespace {

std::vector<FilePiece> pieces_of(const std::vector<std::string>& texts) {
  std::vector<FilePiece> pieces;
  for (const std::string& text : texts) pieces.push_back(std::as_bytes(std::span(text)));
  return pieces;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text;
  return all;
}

// Returns pieces of random lengths, some of them empty, with `bytes` random bytes in total.
std::vector<std::string> random_pieces(std::mt19937& random, std::size_t bytes) {
  std::vector<std::string> texts;
  while (bytes > 0) {
    std::string& text = texts.emplace_back(std::min<std::size_t>(bytes, random() % 3 * (random() % 700'000)), '\0');
    for (char& byte : text) byte = static_cast<char>(random());
    bytes -= text.size();
  }
  texts.emplace_back();
  return texts;
}

}  // namespace

TEST_CASE("a byte that changes between writing and reading again is found, wherever it is") {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  FileVerifier verifier;
  const unsigned seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, std::size_t{100'000}, std::size_t{1} << 20,
                                  (std::size_t{2} << 20) + 12'345}) {
    CAPTURE(bytes);
    const std::vector<std::string> texts = random_pieces(random, bytes);
    const std::string all = joined(texts);
    write_text(path, all);
    CHECK_NOTHROW(verifier.verify(path, "shown", pieces_of(texts)));
    for (const std::size_t at : {std::size_t{0}, bytes - 1, random() % bytes}) {
      std::string damaged = all;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
      write_text(path, damaged);
      ErrorKind kind{};
      CHECK(contains(failure_of([&] { verifier.verify(path, "shown", pieces_of(texts)); }, &kind),
                     "shown: file differs on the disk"));
      CHECK(kind == ErrorKind::resource);
    }
  }
}

TEST_CASE("a file that is too short, too long, missing or unreadable is found") {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  const std::vector<std::string> texts{"some ", "text"};
  const auto failure = [&] {
    ErrorKind kind{};
    const std::string text = failure_of([&] { FileVerifier().verify(path, "shown", pieces_of(texts)); }, &kind);
    CHECK(kind == ErrorKind::resource);
    return text;
  };
  for (const char* found : {"some tex", "some text.", ""}) {
    write_text(path, found);
    CHECK(contains(failure(), "shown: file differs on the disk"));
  }
  fs::remove(path);
  CHECK(contains(failure(), "shown: file cannot be read again after it was written: No such file"));
  fs::create_directory(path);
  CHECK_THROWS_AS(FileVerifier().verify(path, "shown", pieces_of(texts)), Error);
  fs::remove(path);
  write_text(path, "");
  CHECK_NOTHROW(FileVerifier().verify(path, "shown", {}));
}

// The folder has no files of its own file system's kind to bypass: the kernel's copy is all there is.
TEST_CASE("a file in shared memory is compared, too") {
  std::string folder = "/dev/shm/trainctl-test-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return;
  const std::vector<std::string> texts{"some ", std::string(3'000'000, 'x')};
  write_text(folder + "/file", joined(texts));
  CHECK_NOTHROW(FileVerifier().verify(folder + "/file", "shown", pieces_of(texts)));
  write_text(folder + "/file", joined(texts) + "x");
  CHECK_THROWS_AS(FileVerifier().verify(folder + "/file", "shown", pieces_of(texts)), Error);
  fs::remove_all(folder);
}

}  // namespace trainctl::test::read_back_test
