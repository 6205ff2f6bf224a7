// Kernel choices kept for the user.
#include "io/kernels/kernel_cache.h"

#include <cstdlib>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "core/base/log.h"
#include "io/checkpoint/atomic_file.h"

namespace trainctl {
namespace {

std::filesystem::path cache_file(const std::string& fingerprint) {
  std::filesystem::path folder;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != 0) {
    folder = cache;
  } else if (const char* home = std::getenv("HOME"); home != nullptr && *home != 0) {
    folder = std::filesystem::path(home) / ".cache";
  } else {
    return {};
  }
  return folder / "trainctl" / format("kernels-{:016x}", xxh3(fingerprint.data(), fingerprint.size()));
}

}  // namespace

KernelChoices load_kernel_choices(const std::string& fingerprint) {
  constexpr std::int64_t largest = 64 << 20;
  const std::string path = cache_file(fingerprint).string();
  std::string text;
  try {
    if (path.empty() || !exists(path)) return {};
    text = read_file(path, largest);
  } catch (const Error& error) {
    log::warning(format("kept kernel choices cannot be read, kernels are timed again: {}", error.what()));
    return {};
  }
  KernelChoices choices;
  try {
    choices.add_file(text);
  } catch (const Error& error) {
    const std::string aside = path + ".damaged";
    std::error_code failure;
    std::filesystem::rename(path, aside, failure);
    log::warning(format("{} is damaged: {}; kernels are timed again, and what was there is kept as {}", path,
                        error.what(), failure ? path : aside));
    return {};
  }
  return choices;
}

void keep_kernel_choices(const std::string& fingerprint, const KernelChoices& choices) {
  const std::filesystem::path file = cache_file(fingerprint);
  if (file.empty()) return;
  try {
    std::filesystem::create_directories(file.parent_path());
    write_file(file.string(), choices.file_text());
  } catch (const std::exception& error) {
    log::debug(format("kernel choices are not kept: {}", error.what()));
  }
}

}  // namespace trainctl
