// How long tests wait for what must come: so long that only a hang takes longer, also on a machine that is busy with
// other work, and longer under a sanitizer.
#pragma once

namespace trainctl::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int time_limit = 600;  // seconds
#else
inline constexpr int time_limit = 240;
#endif

}  // namespace trainctl::test
