// The main function of the CUDA tests. Without a device they are skipped, with exit code 77. With the arguments
// `time-patterns [IMAGES [bfloat16|float16]]` it prints the timings of test/cuda/patterns/patterns.h, one JSON object
// per line, for 256 images in bfloat16 by default.
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
#include <filesystem>
#include <string_view>

#include "core/backend/device_module.h"
#include "core/base/error.h"
#include "test/cuda/patterns/patterns.h"

namespace {

constexpr int skipped = 77;

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

int time_patterns(std::int64_t images, std::string_view dtype) {
  if (dtype != "bfloat16" && dtype != "float16") {
    std::fprintf(stderr, "patterns are timed in bfloat16 or float16\n");
    return 2;
  }
  if (const std::string why = missing(); !why.empty()) {
    std::printf("skipped, no CUDA device: %s\n", why.c_str());
    return skipped;
  }
  // The library of the patterns is in the module's folder. It finds the module's functions only if they are global.
  Dl_info file{};
  dladdr(trainctl::load_cuda_module().module, &file);
  dlopen(file.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  const auto library = std::filesystem::path(file.dli_fname).parent_path() / "trainctl_cuda_patterns.so";
  void* patterns = dlopen(library.c_str(), RTLD_NOW);
  void* found = patterns == nullptr ? nullptr : dlsym(patterns, "trainctl_cuda_time_patterns");
  if (found == nullptr) {
    std::fprintf(stderr, "the patterns cannot be loaded: %s\n", dlerror());
    return 1;
  }
  const auto time = reinterpret_cast<decltype(&trainctl_cuda_time_patterns)>(found);
  try {
    time(images, dtype == "float16" ? trainctl::DType::float16 : trainctl::DType::bfloat16, [](const std::string& row) {
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
    return time_patterns(argc > 2 ? std::atoll(argv[2]) : 256, argc > 3 ? argv[3] : "bfloat16");
  Catch::Session session;
  if (const int failed = session.applyCommandLine(argc, argv)) return failed;
  const bool lists = std::any_of(argv, argv + argc, [](std::string_view word) { return word.starts_with("--list"); });
  if (const std::string why = lists ? "" : missing(); !why.empty()) {
    std::printf("skipped, no CUDA device: %s\n", why.c_str());
    return skipped;
  }
  return session.run() == 0 ? 0 : 1;  // Catch2 returns the number of failures, which could be that of a skipped test
}
