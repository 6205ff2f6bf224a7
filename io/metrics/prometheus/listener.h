// Opens the listening socket for Prometheus.
#pragma once

#include "core/spec/values.h"
#include "io/metrics/prometheus/address.h"

namespace trainctl {

// Returns a blocking socket that listens on the address. Throws Error{config} with the location of the address in the
// config if the address is in use or cannot be used.
int listen_on(const Located<ListenAddress>& address);

}  // namespace trainctl
