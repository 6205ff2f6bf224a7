// Finding the secret.
#include "parallel/launch/agent/secret.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/hmac.h"
#include "parallel/launch/agent/private_file.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t shortest = 16, fewest_letters = 6;
constexpr const char* remedy =
    "make one for all tasks, in a file that only you can read: openssl rand -hex 32 > FILE; chmod 600 FILE; "
    "TRAINCTL_SECRET_FILE=FILE";

std::string without_space(std::string text) {
  const auto space = [](char c) { return c == '\n' || c == '\r' || c == ' ' || c == '\t'; };
  while (!text.empty() && space(text.back())) text.pop_back();
  return text;
}

// Whether a text is a shorter one again and again, such as "abcabcab".
bool repeats_itself(const std::string& text) {
  for (std::size_t part = 1; part <= text.size() / 2; ++part) {
    if (std::equal(text.begin() + static_cast<std::ptrdiff_t>(part), text.end(), text.begin())) return true;
  }
  return false;
}

// Refuses what can be guessed.
std::string hard_to_guess(std::string secret, std::string_view where) {
  if (secret.size() < shortest) {
    throw Error(ErrorKind::config,
                format("the secret of {} has {} characters, and {} are the least", where, secret.size(), shortest),
                remedy);
  }
  const std::size_t letters = std::set<char>(secret.begin(), secret.end()).size();
  if (letters >= fewest_letters && !repeats_itself(secret)) return secret;
  throw Error(ErrorKind::config,
              format("the secret of {} can be guessed: it {}", where,
                     letters < fewest_letters
                         ? format("has {} different characters, and {} are the least", letters, fewest_letters)
                         : "repeats one part of itself"),
              remedy);
}

// Without asking for addresses, which another may give: a name is loopback only if it is localhost.
bool on_loopback(const std::string& host) {
  in_addr address{};
  if (inet_pton(AF_INET, host.c_str(), &address) != 1) return host == "localhost";
  return ntohl(address.s_addr) >> 24 == 127;
}

// The user's folder of caches; XDG's rule passes over a relative one. Throws Error{config} if no folder is the user's:
// the working directory may be another's.
fs::path user_cache(const Variables& variables) {
  const fs::path cache = variables.text("XDG_CACHE_HOME"), home = variables.text("HOME");
  if (cache.is_absolute()) return cache;
  if (home.is_absolute()) return home / ".cache";
  throw Error(ErrorKind::config,
              "the tasks of TF_CONFIG share a secret in the user's cache, and neither HOME nor XDG_CACHE_HOME names an "
              "absolute folder",
              format("set HOME, or {}", remedy));
}

// Made by the first process that needs it.
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

std::optional<std::string> stated_secret(const Variables& variables) {
  const std::string secret = without_space(variables.text(secret_variable));
  if (!secret.empty()) return hard_to_guess(secret, secret_variable);
  const std::string file = variables.text(secret_file_variable);
  if (file.empty()) return {};
  return hard_to_guess(without_space(read_private_file(file, PrivateFolder::guarded)), file);
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

void forget_secret() { unsetenv(secret_variable.data()); }

}  // namespace trainctl
