// The main of the CUDA tests: without a device they are skipped (exit code 4).
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "core/backend/device_module.h"
#include "core/base/error.h"

namespace {

// Why no device can be used; empty where one can.
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

}  // namespace

int main(int argc, char** argv) {
  Catch::Session session;
  if (const int failed = session.applyCommandLine(argc, argv)) return failed;
  const bool lists = std::any_of(argv, argv + argc, [](std::string_view word) { return word.starts_with("--list"); });
  if (const std::string why = lists ? "" : missing(); !why.empty()) {
    std::printf("skipped, no CUDA device: %s\n", why.c_str());
    return 4;
  }
  return session.run();
}
