// Tests the names of Kubernetes objects.
#include <string>

#include "parallel/launch/kubernetes/mpi_job.h"
#include "test/catch.h"

namespace trainctl::kubernetes_test {

TEST_CASE("names of volume claims are checked as Kubernetes checks them") {
  for (const std::string& good : {std::string("workspace"), std::string("a"), std::string("my-claim.2"),
                                  std::string("0-a"), std::string("a.b-c.d"), std::string(253, 'x')}) {
    CAPTURE(good);
    CHECK(is_object_name(good));
  }
  for (const std::string& bad :
       {std::string(""), std::string("A B"), std::string("Claim"), std::string("-a"), std::string("a-"),
        std::string("a..b"), std::string(".a"), std::string("a."), std::string("a.-b"), std::string("a_b"),
        std::string("a\nb"), std::string("\xc3\xa4"), std::string(254, 'x')}) {
    CAPTURE(bad);
    CHECK_FALSE(is_object_name(bad));
  }
}

}  // namespace trainctl::kubernetes_test
