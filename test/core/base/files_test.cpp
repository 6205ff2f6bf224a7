// Tests that each error of the file system is one Error that names the file.
#include "core/base/files.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "test/catch.h"

namespace trainctl::files_test {
namespace {

struct Folder {
  std::string path = "/tmp/trainctl-files-XXXXXX";
  Folder() { REQUIRE(mkdtemp(path.data()) != nullptr); }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string operator/(const std::string& name) const { return path + "/" + name; }
};

void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::string error_of(const std::function<void()>& work, ErrorKind kind = ErrorKind::data) {
  try {
    work();
  } catch (const Error& error) {
    if (error.kind() != kind) return std::string("another kind: ") + error.what();
    return error.what();
  }
  return "no error";
}

void check_words(const std::string& text, std::initializer_list<const char*> words) {
  INFO(text);
  for (const char* word : words) CHECK(text.find(word) != std::string::npos);
}

}  // namespace

TEST_CASE("files: regular files, links and folders are read") {
  const Folder folder;
  const std::string text = "some text\nof two lines";
  write(folder / "a", text);
  write(folder / "empty", "");
  REQUIRE(symlink("a", (folder / "link").c_str()) == 0);
  REQUIRE(mkdir((folder / "below").c_str(), 0755) == 0);
  for (const char* name : {"a", "link"}) {
    CHECK(read_file(folder / name, 100) == text);
    CHECK(read_file(folder / name, static_cast<std::int64_t>(text.size())) == text);
    CHECK(file_type(folder / name) == FileType::regular);
  }
  CHECK(read_file(folder / "empty", 100) == "");
  CHECK_FALSE(read_file("/proc/self/status", 1'000'000).empty());  // reports a size of 0
  CHECK(file_type(folder / "none") == FileType::absent);
  CHECK(file_type(folder / "a/none") == FileType::absent);
  CHECK(is_folder(folder / "below"));
  char bytes[4] = {};
  const InputFile file(folder / "a");
  CHECK(file.size() == static_cast<std::int64_t>(text.size()));
  file.read(5, bytes, 4);
  CHECK(std::string(bytes, 4) == "text");
  CHECK(file.read_some(file.size() - 2, bytes, 4) == 2);
  std::string listing;
  for (const FolderEntry& entry : list_folder(folder.path)) {
    listing += entry.name + (entry.type == FileType::regular  ? " file;"
                             : entry.type == FileType::folder ? " folder;"
                             : entry.type == FileType::link   ? " link;"
                                                              : " other;");
  }
  CHECK(listing == "a file;below folder;empty file;link link;");
}

TEST_CASE("files: a file that cannot be read leads to one error with the file's name") {
  const Folder folder;
  write(folder / "a", "text");
  const std::string loop = folder / "loop", pipe = folder / "pipe", long_name = folder / std::string(300, 'x');
  REQUIRE(symlink("loop", loop.c_str()) == 0);
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const auto read = [](const std::string& path) { return error_of([&] { read_file(path, 100); }); };
  check_words(read(folder / "none"), {"none", "No such file"});
  check_words(read(folder / "a/none"), {"a/none", "Not a directory"});
  check_words(read(folder / "~/none"), {"~/none", "'~' is not replaced; in a config, write ${HOME}"});
  check_words(read(folder / "$DATA_2/none"), {"'$DATA_2' is not replaced; in a config, write ${DATA_2}"});
  check_words(read(folder / "none$"), {"No such file"});
  check_words(read(loop), {"loop", "symbolic link", "correct the link"});
  check_words(read(long_name), {"xxx", "too long", "shorten"});
  check_words(read(folder.path), {folder.path.c_str(), "a folder"});
  check_words(read(pipe), {"pipe", "a pipe, not a regular file"});
  check_words(read("/dev/zero"), {"/dev/zero", "a device"});
  check_words(read(std::string("a\0b", 3)), {"zero byte"});
  check_words(error_of([&] { read_file(folder / "a", 3); }), {"larger than 3 bytes"});
  for (const std::string& path : {loop, long_name}) {
    check_words(error_of([&] { exists(path); }), {path.c_str()});
    check_words(error_of([&] { list_folder(path); }), {path.c_str()});
  }
  check_words(error_of([&] { list_folder(folder / "a"); }), {"Not a directory"});
  check_words(error_of(
                  [&] {
                    read_file(folder / "none", 9, {ErrorKind::config, "see above"});
                  },
                  ErrorKind::config),
              {"none", "see above"});
  const InputFile file(folder / "a");
  REQUIRE(truncate((folder / "a").c_str(), 2) == 0);
  char bytes[4];
  check_words(error_of([&] { file.read(0, bytes, 4); }), {"shorter"});
  sockaddr_un address{AF_UNIX, {}};
  std::strncpy(address.sun_path, (folder / "socket").c_str(), sizeof address.sun_path - 1);
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  check_words(read(folder / "socket"), {"socket", "not a regular file"});
  close(descriptor);
}

TEST_CASE("errors: a NUL character does not end the text") {
  const Error error(ErrorKind::data, SourceLocation{std::string("a\0b", 3)}, std::string("'\0'", 3), "correct it");
  CHECK(std::string(error.what()) == "a\\x00b: '\\x00'; correct it");
}

TEST_CASE("files: a folder without permission is an error, not an empty one") {
  const Folder folder;
  REQUIRE(chmod(folder.path.c_str(), 0755) == 0);
  REQUIRE(mkdir((folder / "closed").c_str(), 0755) == 0);
  write(folder / "closed/a", "text");
  REQUIRE(chmod((folder / "closed").c_str(), 0) == 0);
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) _exit(2);
    const auto good = [](const std::string& text) { return text.find("Permission denied") != std::string::npos; };
    const bool all = good(error_of([&] { list_folder(folder / "closed"); })) &&
                     good(error_of([&] { exists(folder / "closed/a"); })) &&
                     good(error_of([&] { read_file(folder / "closed/a", 9); }));
    _exit(all ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  chmod((folder / "closed").c_str(), 0755);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) {
    WARN("skipped: this process cannot become another user");
  } else {
    CHECK(WEXITSTATUS(status) == 0);
  }
}

}  // namespace trainctl::files_test
