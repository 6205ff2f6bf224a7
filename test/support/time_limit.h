// Time limits of tests, which are longer under a sanitizer.
#pragma once

namespace trainctl::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int sanitizer_slowdown = 10;  // how many times as long a program takes at most
inline constexpr int time_limit = 600;         // seconds for an event to come; only a hang takes longer
#else
inline constexpr int sanitizer_slowdown = 1;
inline constexpr int time_limit = 240;
#endif

}  // namespace trainctl::test
