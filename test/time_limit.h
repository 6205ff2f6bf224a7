// How long tests wait for what must come: longer under a sanitizer, where all is slower.
#pragma once

namespace trainctl::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int time_limit = 300;  // seconds
#else
inline constexpr int time_limit = 60;
#endif

}  // namespace trainctl::test
