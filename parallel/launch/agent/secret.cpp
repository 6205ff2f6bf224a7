// Finds the secret. All checks of a file use the opened descriptor, so that the file cannot be replaced between check
// and use.
#include "parallel/launch/agent/secret.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/hmac.h"
#include "core/base/output.h"

namespace trainctl {
namespace {

constexpr mode_t access_by_others = 077, writable_by_others = 022;
constexpr FileRole secret_role{ErrorKind::config, "see TRAINCTL_SECRET_FILE"};

class OwnedDescriptor {
 public:
  explicit OwnedDescriptor(int number) : number_(number) {}
  ~OwnedDescriptor() {
    if (number_ >= 0) close(number_);
  }
  OwnedDescriptor(const OwnedDescriptor&) = delete;
  OwnedDescriptor& operator=(const OwnedDescriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

[[noreturn]] void refuse(const std::string& path, const std::string& what, const std::string& remedy) {
  throw Error(ErrorKind::config, SourceLocation{path}, what, remedy);
}

struct stat status_of(const OwnedDescriptor& file, const std::string& path) {
  struct stat status {};
  if (fstat(file.number(), &status) != 0) throw_file_error(path, "cannot be read", errno, secret_role);
  return status;
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string name_of(const std::string& path) { return std::filesystem::path(path).filename().string(); }

void check_folder(const OwnedDescriptor& folder, const std::string& path, PrivateFolder wanted) {
  const struct stat status = status_of(folder, path);
  const bool own = status.st_uid == geteuid();
  const std::string remedy = "keep the secret in a folder of your own: chmod 700 FOLDER";
  if (wanted == PrivateFolder::kept) {
    if (!own) refuse(path, "this folder of a secret belongs to another user", "remove it, or let its owner do so");
    if ((status.st_mode & access_by_others) != 0)
      refuse(path, "other users may enter this folder of a secret", "chmod 700 it");
    return;
  }
  if (!own && status.st_uid != 0) refuse(path, "this folder of a secret belongs to another user", remedy);
  // In a sticky folder such as /tmp others may add files, but cannot replace this user's.
  if ((status.st_mode & writable_by_others) != 0 && (status.st_mode & S_ISVTX) == 0) {
    refuse(path, "other users may replace the files in this folder of a secret", remedy);
  }
}

// The folder of a private file, opened and checked. trainctl's own folder must not be a link.
class CheckedFolder : public OwnedDescriptor {
 public:
  CheckedFolder(const std::string& path, PrivateFolder wanted)
      : OwnedDescriptor(
            open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | (wanted == PrivateFolder::kept ? O_NOFOLLOW : 0))) {
    if (number() < 0) throw_file_error(path, "cannot be opened", errno, secret_role);
    check_folder(*this, path, wanted);
  }
};

void check_file(const OwnedDescriptor& file, const std::string& path) {
  const struct stat status = status_of(file, path);
  if (!S_ISREG(status.st_mode))
    refuse(path, "the file of a secret is not a regular file", "write the secret into a file");
  if (status.st_uid != geteuid()) {
    refuse(path, "the file of a secret belongs to another user", "copy it to a file of your own, and chmod 600 that");
  }
  if ((status.st_mode & access_by_others) != 0) refuse(path, "other users may read this secret", "chmod 600 " + path);
}

namespace fs = std::filesystem;

constexpr std::size_t min_length = 16, min_different = 6;
constexpr const char* remedy =
    "make one for all tasks, in a file that only you can read: openssl rand -hex 32 > FILE; chmod 600 FILE; "
    "TRAINCTL_SECRET_FILE=FILE";

std::string without_space(std::string text) {
  const auto space = [](char c) { return c == '\n' || c == '\r' || c == ' ' || c == '\t'; };
  while (!text.empty() && space(text.back())) text.pop_back();
  return text;
}

// Returns whether a text consists of repetitions of a shorter text, such as "abcabcab".
bool repeats_itself(const std::string& text) {
  for (std::size_t part = 1; part <= text.size() / 2; ++part) {
    if (std::equal(text.begin() + static_cast<std::ptrdiff_t>(part), text.end(), text.begin())) return true;
  }
  return false;
}

// Returns the secret; throws Error{config} if it can be guessed.
std::string hard_to_guess(std::string secret, std::string_view where) {
  if (secret.size() < min_length) {
    throw Error(ErrorKind::config,
                format("the secret of {} has {} characters, but needs at least {}", where, secret.size(), min_length),
                remedy);
  }
  const std::size_t different = std::set<char>(secret.begin(), secret.end()).size();
  if (different >= min_different && !repeats_itself(secret)) return secret;
  throw Error(ErrorKind::config,
              format("the secret of {} can be guessed: it {}", where,
                     different < min_different
                         ? format("has {} different characters, but needs at least {}", different, min_different)
                         : "repeats a shorter text"),
              remedy);
}

// Returns whether a host is loopback. Does not resolve names, since other users may control the answer: localhost is
// the only loopback name.
bool on_loopback(const std::string& host) {
  in_addr address{};
  if (inet_pton(AF_INET, host.c_str(), &address) != 1) return host == "localhost";
  return ntohl(address.s_addr) >> 24 == 127;
}

// Returns the user's cache folder; as XDG specifies, a relative path is ignored. Throws Error{config} if no variable
// names a folder of the user, since the working directory may be another user's.
fs::path user_cache(const Variables& variables) {
  const fs::path cache = variables.text("XDG_CACHE_HOME"), home = variables.text("HOME");
  if (cache.is_absolute()) return cache;
  if (home.is_absolute()) return home / ".cache";
  throw Error(ErrorKind::config,
              "the tasks of TF_CONFIG share a secret in the user's cache, but neither HOME nor XDG_CACHE_HOME names an "
              "absolute folder",
              format("set HOME, or {}", remedy));
}

// Returns the secret in the user's cache folder; the first process that needs the secret creates it.
std::string secret_of_user(const Variables& variables) {
  const std::string path = user_cache(variables) / "trainctl" / "launch" / "secret";
  if (!exists(path, {ErrorKind::config})) {
    std::string text;
    for (const unsigned char byte : random_bytes(32)) text += format("{:02x}", byte);
    write_private_file(path, text);
  }
  return hard_to_guess(without_space(read_private_file(path, PrivateFolder::kept)), path);
}

}  // namespace

std::string read_private_file(const std::string& path, PrivateFolder folder) {
  constexpr std::size_t max_bytes = 4096;
  const CheckedFolder in(folder_of(path), folder);
  const OwnedDescriptor file(
      openat(in.number(), name_of(path).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (file.number() < 0 && errno == ELOOP) {
    refuse(path, "the file of a secret is a symbolic link, which somebody else may have made", "name the file itself");
  }
  if (file.number() < 0) throw_file_error(path, "cannot be opened", errno, secret_role);
  check_file(file, path);
  std::array<char, max_bytes + 1> bytes{};
  const ssize_t count = read(file.number(), bytes.data(), bytes.size());
  if (count < 0) throw_file_error(path, "cannot be read", errno, secret_role);
  if (static_cast<std::size_t>(count) > max_bytes)
    refuse(path, format("is larger than {} bytes", max_bytes), "shorten it");
  return {bytes.data(), static_cast<std::size_t>(count)};
}

void write_private_file(const std::string& path, const std::string& text) {
  std::error_code failure;
  std::filesystem::create_directories(std::filesystem::path(folder_of(path)).parent_path(), failure);
  mkdir(folder_of(path).c_str(), S_IRWXU);  // an existing folder is checked below
  const CheckedFolder in(folder_of(path), PrivateFolder::kept);
  const std::string name = name_of(path), own = format("{}.{}", name, getpid());
  unlinkat(in.number(), own.c_str(), 0);  // may be left by a process that was killed
  int error = 0;
  {
    const OwnedDescriptor file(
        openat(in.number(), own.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (file.number() < 0) throw_file_error(path, "cannot be written", errno, {ErrorKind::resource});
    error = write_all(file.number(), text);
    if (error == 0 && fsync(file.number()) != 0) error = errno;
  }
  if (error == 0 && linkat(in.number(), own.c_str(), in.number(), name.c_str(), 0) != 0 && errno != EEXIST)
    error = errno;
  unlinkat(in.number(), own.c_str(), 0);
  if (error != 0) throw_file_error(path, "cannot be written", error, {ErrorKind::resource});
}

std::optional<std::string> given_secret(const Variables& variables) {
  const std::string secret = without_space(variables.text(secret_variable));
  if (!secret.empty()) return hard_to_guess(secret, secret_variable);
  const std::string file = variables.text(secret_file_variable);
  if (file.empty()) return {};
  return hard_to_guess(without_space(read_private_file(file, PrivateFolder::guarded)), file);
}

std::string secret_for(const TfConfig& config, const Variables& variables) {
  if (const auto given = given_secret(variables)) return *given;
  const bool local =
      std::all_of(config.tasks.begin(), config.tasks.end(), [](const TfTask& task) { return on_loopback(task.host); });
  if (local) return secret_of_user(variables);
  throw Error(ErrorKind::config,
              "the chief of TF_CONFIG starts commands on its workers, which requires a secret (TRAINCTL_SECRET or "
              "TRAINCTL_SECRET_FILE)",
              remedy);
}

void forget_secret() { unsetenv(secret_variable.data()); }

}  // namespace trainctl
