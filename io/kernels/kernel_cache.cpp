// Kernel choices kept for the user.
#include "io/kernels/kernel_cache.h"

#include "io/kernels/user_cache.h"

namespace trainctl {
namespace {

CachedFile file_of(const std::string& fingerprint) {
  return {"kernels", fingerprint, "kernel choices", "kernels are timed again"};
}

}  // namespace

KernelChoices load_kernel_choices(const std::string& fingerprint) {
  KernelChoices choices;
  load_cached(file_of(fingerprint), [&](const std::string& text) {
    KernelChoices kept;
    kept.add_file(text);
    choices = kept;
  });
  return choices;
}

void keep_kernel_choices(const std::string& fingerprint, const KernelChoices& choices) {
  keep_cached(file_of(fingerprint), choices.file_text());
}

}  // namespace trainctl
