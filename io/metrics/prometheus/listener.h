// Listening on an address for Prometheus.
#pragma once

#include "core/spec/values.h"
#include "io/metrics/prometheus/address.h"

namespace trainctl {

// Returns a socket that listens, and blocks. Throws Error{config} with the place of the address where it is in use, or
// cannot be listened on.
int listen_on(const Located<ListenAddress>& address);

}  // namespace trainctl
