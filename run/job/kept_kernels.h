// Loads and stores the kernel choices that are kept for the user between runs.
#pragma once

namespace trainctl {

class Backend;
class KernelChoices;
struct RunSpec;

// The kind of the file that holds them (run/job/user_cache.h).
inline constexpr const char* kernels_file = "kernels";

// The choices that are kept for this device; none if there is no file or it is damaged, or if the CPU's kernels are
// chosen by rules, which cost no time to apply. (A GPU's kernels that are chosen by rules have their own keys.)
KernelChoices kept_kernels(const RunSpec& spec, const Backend& backend);

// Stores the choices, if kept_kernels() would return them.
void keep_kernels(const RunSpec& spec, const Backend& backend, const KernelChoices& choices);

}  // namespace trainctl
