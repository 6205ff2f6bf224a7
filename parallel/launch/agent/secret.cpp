// Finding the secret.
#include "parallel/launch/agent/secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/hmac.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t shortest = 16;
constexpr const char* remedy =
    "make one for all tasks, in a file that only you can read: openssl rand -hex 32 > FILE; chmod 600 FILE; "
    "TRAINCTL_SECRET_FILE=FILE";

std::string without_space(std::string text) {
  const auto space = [](char c) { return c == '\n' || c == '\r' || c == ' ' || c == '\t'; };
  while (!text.empty() && space(text.back())) text.pop_back();
  return text;
}

std::string long_enough(std::string secret, std::string_view where) {
  if (secret.size() >= shortest) return secret;
  throw Error(ErrorKind::config,
              format("the secret of {} has {} characters, and {} are the least", where, secret.size(), shortest),
              remedy);
}

std::string read_secret(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0 && (status.st_mode & 077) != 0 && status.st_uid == geteuid()) {
    throw Error(ErrorKind::config, Place{path}, "other users may read this secret", "chmod 600 " + path);
  }
  constexpr std::int64_t most = 4096;
  return without_space(read_file(path, most, {ErrorKind::config, "see TRAINCTL_SECRET_FILE"}));
}

bool on_loopback(const std::string& host) { return host == "localhost" || host.starts_with("127."); }

// Made by the first process that needs it.
std::string secret_of_user(const Variables& variables) {
  const std::string cache = variables.text("XDG_CACHE_HOME");
  const fs::path folder = (cache.empty() ? fs::path(variables.text("HOME")) / ".cache" : fs::path(cache)) / "trainctl";
  const std::string path = folder / "launch-secret", own = path + "." + std::to_string(getpid());
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (!exists(path)) {
    const int file = open(own.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    std::string text;
    for (const unsigned char byte : random_bytes(32)) text += format("{:02x}", byte);
    const bool written = file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    if (file >= 0) close(file);
    if (written) [[maybe_unused]]
      const int first = link(own.c_str(), path.c_str());  // fails where another was first
    unlink(own.c_str());
  }
  return long_enough(read_secret(path), path);
}

}  // namespace

std::optional<std::string> stated_secret(const Variables& variables) {
  const std::string secret = without_space(variables.text(secret_variable));
  if (!secret.empty()) return long_enough(secret, secret_variable);
  const std::string file = variables.text(secret_file_variable);
  if (file.empty()) return {};
  return long_enough(read_secret(file), file);
}

std::string secret_for(const TfConfig& config, const Variables& variables) {
  if (const auto stated = stated_secret(variables)) return *stated;
  const bool local =
      std::all_of(config.tasks.begin(), config.tasks.end(), [](const TfTask& task) { return on_loopback(task.host); });
  if (local) return secret_of_user(variables);
  throw Error(ErrorKind::config,
              "the chief of TF_CONFIG starts commands on its workers, and no secret says who may (TRAINCTL_SECRET or "
              "TRAINCTL_SECRET_FILE)",
              remedy);
}

}  // namespace trainctl
