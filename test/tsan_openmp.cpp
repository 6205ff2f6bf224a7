// Tells ThreadSanitizer what libgomp, which is not built for it, orders: what the caller of a parallel region did
// comes before what the threads do in it, and that before what the caller does next. Linked into the tsan preset alone,
// in the place of the function of this name that the compiler calls.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

namespace {

using Body = void (*)(void* data);

// Two of its bytes stand for the region's begin and end.
struct Region {
  Body body;
  void* data;
  char begin = 0;
  char end = 0;
};

void run(void* argument) {
  auto* region = static_cast<Region*>(argument);
  __tsan_acquire(&region->begin);
  region->body(region->data);
  __tsan_release(&region->end);
}

}  // namespace

extern "C" void GOMP_parallel(Body body, void* data, unsigned threads, unsigned flags) {
  using Function = void (*)(Body, void*, unsigned, unsigned);
  static const auto of_libgomp = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "GOMP_parallel"));
  Region region{body, data};
  __tsan_release(&region.begin);
  of_libgomp(run, &region, threads, flags);
  __tsan_acquire(&region.end);
}
