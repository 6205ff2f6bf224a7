// Creates the backend under test: the CUDA backend.
#include "core/backend/select.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test {

std::unique_ptr<Backend> backend_under_test(const BackendOptions& options) { return make_backend("cuda", options); }

}  // namespace trainctl::test
