// Kernel choices that are kept for the user, where a run may use them.
#include "run/job/kept_kernels.h"

#include "io/kernels/kernel_cache.h"
#include "run/job/device.h"

namespace trainctl {
namespace {

bool are_kept(const RunSpec& spec, const Backend& backend) {
  return !backend.on_host() || times_kernels(spec.train, spec.strategy);
}

}  // namespace

KernelChoices kept_kernels(const RunSpec& spec, const Backend& backend) {
  return are_kept(spec, backend) ? load_kernel_choices(backend.fingerprint()) : KernelChoices{};
}

void keep_kernels(const RunSpec& spec, const Backend& backend, const KernelChoices& choices) {
  if (are_kept(spec, backend)) keep_kernel_choices(backend.fingerprint(), choices);
}

}  // namespace trainctl
