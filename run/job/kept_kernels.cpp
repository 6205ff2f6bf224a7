// Loads and stores kernel choices, in one file for each hardware fingerprint.
#include "run/job/kept_kernels.h"

#include "core/backend/backend.h"
#include "core/backend/choices.h"
#include "run/job/device.h"
#include "run/job/user_cache.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

bool are_kept(const RunSpec& spec, const Backend& backend) {
  return !backend.on_host() || times_kernels(spec.train, spec.strategy);
}

CachedFile file_of(const Backend& backend) {
  return {kernels_file, backend.fingerprint(), "kernel choices", "kernels are timed again"};
}

}  // namespace

KernelChoices kept_kernels(const RunSpec& spec, const Backend& backend) {
  KernelChoices choices;
  if (!are_kept(spec, backend)) return choices;
  load_cached(file_of(backend), [&](const std::string& text) {
    KernelChoices kept;
    kept.add_file(text);
    choices = kept;
  });
  return choices;
}

void keep_kernels(const RunSpec& spec, const Backend& backend, const KernelChoices& choices) {
  if (are_kept(spec, backend)) keep_cached(file_of(backend), choices.file_text());
}

}  // namespace trainctl
