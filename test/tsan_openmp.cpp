// Tells ThreadSanitizer the order that libgomp, which is not built for ThreadSanitizer, guarantees: a parallel region
// begins after what its caller did before, and ends before the caller goes on. Linked into the tsan preset alone: the
// compiler's calls reach this function instead of libgomp's function of the same name.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

namespace {

using Body = void (*)(void* data);

// ThreadSanitizer takes the addresses of two bytes of a Region for the region's begin and end.
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
