// Kernel choices that are kept for the user, where a run may use them.
#pragma once

namespace trainctl {

class Backend;
class KernelChoices;
struct RunSpec;

// The kind of the file that holds them (run/job/user_cache.h).
inline constexpr const char* kernels_file = "kernels";

// The choices that are kept for this device; none if there is no file or it is damaged, and where the CPU's kernels
// follow from rules, which cost no time to apply. (A GPU's kernels that follow from rules have keys of their own.)
KernelChoices kept_kernels(const RunSpec& spec, const Backend& backend);

// Keeps them, where kept_kernels() would return them.
void keep_kernels(const RunSpec& spec, const Backend& backend, const KernelChoices& choices);

}  // namespace trainctl
