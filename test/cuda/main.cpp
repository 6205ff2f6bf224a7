// The main function of the CUDA tests; without a device they are skipped (exit code 4). With the arguments
// `time-patterns [IMAGES]` it prints the timings of core/backend/cuda/cudnn/patterns.h, one JSON object per line, for
// 256 images by default.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/backend/cuda/cudnn/patterns.h"
#include "core/backend/device_module.h"
#include "core/base/error.h"

namespace {

// Returns why no device can be used, or an empty text if one can.
std::string missing() {
  const auto loaded = trainctl::load_cuda_module();
  if (loaded.module == nullptr) return loaded.why;
  try {
    loaded.module->make_backend({});
    return "";
  } catch (const trainctl::Error& error) {
    return error.what();
  }
}

int time_patterns(std::int64_t images) {
  if (const std::string why = missing(); !why.empty()) {
    std::printf("skipped, no CUDA device: %s\n", why.c_str());
    return 4;
  }
  // Opens the module again by its file, since its interface to programs does not have this function.
  Dl_info file{};
  dladdr(trainctl::load_cuda_module().module, &file);
  void* module = dlopen(file.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  const auto time =
      reinterpret_cast<decltype(&trainctl_cuda_time_patterns)>(dlsym(module, "trainctl_cuda_time_patterns"));
  try {
    time(images, [](const std::string& row) {
      std::puts(row.c_str());
      std::fflush(stdout);
    });
    return 0;
  } catch (const trainctl::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "time-patterns")
    return time_patterns(argc > 2 ? std::atoll(argv[2]) : 256);
  Catch::Session session;
  if (const int failed = session.applyCommandLine(argc, argv)) return failed;
  const bool lists = std::any_of(argv, argv + argc, [](std::string_view word) { return word.starts_with("--list"); });
  if (const std::string why = lists ? "" : missing(); !why.empty()) {
    std::printf("skipped, no CUDA device: %s\n", why.c_str());
    return 4;
  }
  return session.run();
}
