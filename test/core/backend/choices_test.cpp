// Tests that kernel choices are written to a file and read again.
#include "core/backend/choices.h"

#include "core/base/error.h"
#include "test/catch.h"

namespace trainctl::choices_test {
namespace {

KernelChoices some() {
  KernelChoices choices;
  choices.record("conv2d 3x3 float32:[2,9,9,8]", "cudnn engine 62:2=4,13=44");
  choices.record("product 64x10x784 float32 to float32 epilogue 0", "0000000000000042");
  return choices;
}

// Returns the kind of error that reading a file with this text throws, or empty if the file is accepted.
std::optional<ErrorKind> refused(const std::string& text) {
  KernelChoices read;
  try {
    read.add_file(text);
  } catch (const Error& error) {
    return error.kind();
  }
  return {};
}

}  // namespace

TEST_CASE("kernel choices are the same after writing and reading their file") {
  for (const KernelChoices& choices : {some(), KernelChoices()}) {
    KernelChoices read;
    read.add_file(choices.file_text());
    CHECK(read == choices);
  }
}

TEST_CASE("a file of kernel choices that is damaged anywhere is refused") {
  const std::string whole = some().file_text();
  REQUIRE(!refused(whole));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    CAPTURE(i);
    CHECK(refused(whole.substr(0, i)) == ErrorKind::data);
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    CHECK(refused(changed) == ErrorKind::data);
  }
  CHECK(refused(whole + "x\ty\n") == ErrorKind::data);
  CHECK(refused(some().text()) == ErrorKind::data);
}

}  // namespace trainctl::choices_test
