// Tests collectives inside networks on ranks that are threads; test/mpi runs the same networks under mpirun.
#include "core/backend/cpu/cpu_backend.h"
#include "test/catch.h"
#include "test/core/exec/collective_networks.h"
#include "test/parallel/comm/on_threads.h"

namespace trainctl::collectives_test {

TEST_CASE("networks with collectives have the right gradients") {
  for (const int ranks : {2, 3, 4}) {
    CAPTURE(ranks);
    const auto errors = on_threads(ranks, [](Communicator& world) {
      const auto backend = make_cpu_backend({});
      collective_networks::run_all(*backend, world);
    });
    CHECK(errors == std::vector<std::string>(static_cast<std::size_t>(ranks)));
  }
}

}  // namespace trainctl::collectives_test
