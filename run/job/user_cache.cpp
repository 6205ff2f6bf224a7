// Reads and writes the user's cache files.
#include "run/job/user_cache.h"

#include <cstdint>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "core/base/log.h"
#include "io/checkpoint/atomic_file.h"
#include "io/datasets/cache_folder.h"

namespace trainctl {
namespace {

// The path of the file; empty if the user has no cache folder.
std::filesystem::path path_of(const CachedFile& file) {
  const std::string folder = default_cache_folder();
  if (folder.empty()) return {};
  return std::filesystem::path(folder) /
         format("{}-{:016x}", file.kind, xxh3(file.fingerprint.data(), file.fingerprint.size()));
}

}  // namespace

void load_cached(const CachedFile& file, const std::function<void(const std::string& text)>& read) {
  constexpr std::int64_t largest = 64 << 20;
  const std::string path = path_of(file).string();
  std::string text;
  try {
    if (path.empty() || !exists(path)) return;
    text = read_file(path, largest);
  } catch (const Error& error) {
    log::warning(format("kept {} cannot be read, {}: {}", file.contents, file.remedy, error.what()));
    return;
  }
  try {
    read(text);
  } catch (const Error& error) {
    const std::string aside = path + ".damaged";
    std::error_code failure;
    std::filesystem::rename(path, aside, failure);
    log::warning(format("{} is damaged: {}; {}, and the damaged file is kept as {}", path, error.what(), file.remedy,
                        failure ? path : aside));
  }
}

void keep_cached(const CachedFile& file, const std::string& text) {
  const std::filesystem::path path = path_of(file);
  if (path.empty()) return;
  try {
    std::filesystem::create_directories(path.parent_path());
    write_file(path.string(), text);
  } catch (const std::exception& error) {
    log::debug(format("{} are not kept: {}", file.contents, error.what()));
  }
}

}  // namespace trainctl
