// The time limit of tests that wait for an event. Only a hang takes longer, also on a busy machine. It is longer under
// a sanitizer.
#pragma once

namespace trainctl::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int time_limit = 600;  // seconds
#else
inline constexpr int time_limit = 240;
#endif

}  // namespace trainctl::test
