// The ranks that did not answer, and their hosts, as an error of a communicator names them.
#pragma once

#include <string>
#include <vector>

namespace trainctl {

// The ranks that did not arrive or answer; none if the error is another one.
std::vector<int> silent_ranks(const std::string& error);

// "; rank 2 runs on h3": for the error of rank `own` that names ranks which did not arrive or answer, the hosts of
// these; and if no other host is heard of, that its own may be the one that is cut off. If no network interface of its
// own host is up (`network_up`), that this is the one. `hosts`: of all ranks. "" if all ranks run on one host, or the
// error is another one.
std::string silent_hosts(const std::string& error, int own, const std::vector<std::string>& hosts, bool network_up);

}  // namespace trainctl
