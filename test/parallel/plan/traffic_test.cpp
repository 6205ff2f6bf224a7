// Groups and nodes, counted a second time over all ranks of the mesh.
#include "parallel/plan/traffic.h"

#include <random>
#include <set>

#include "test/catch.h"

namespace trainctl::traffic_test {
namespace {

struct Place3 {
  int data, pipeline, tensor;
};

// Of a rank's number, tensor innermost.
Place3 place_of_rank(int rank, const Mesh& mesh) {
  return {rank / mesh.tensor / mesh.pipeline, rank / mesh.tensor % mesh.pipeline, rank % mesh.tensor};
}

bool one_group(const Place3& a, const Place3& b, MeshAxis axis) {
  return (axis == MeshAxis::data || a.data == b.data) && (axis == MeshAxis::pipeline || a.pipeline == b.pipeline) &&
         (axis == MeshAxis::tensor || a.tensor == b.tensor);
}

}  // namespace

TEST_CASE("traffic counts the ranks of a group on a node, and the groups of a node that are alike") {
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    const auto any = [&](int most) { return 1 + static_cast<int>(random() % static_cast<unsigned>(most)); };
    const Mesh mesh{any(6), any(4), any(4)};
    const Nodes nodes{any(10)};
    const int own = any(mesh.ranks()) - 1;
    for (const MeshAxis axis : all_mesh_axes) {
      const Place3 here = place_of_rank(own, mesh);
      int in_group = 0, beside = 0;
      std::set<std::set<int>> alike;
      for (int rank = 0; rank < mesh.ranks(); ++rank) {
        const Place3 place = place_of_rank(rank, mesh);
        const bool on_node = rank / nodes.ranks_per_node == own / nodes.ranks_per_node;
        if (one_group(place, here, axis)) {
          ++in_group;
          beside += on_node ? 1 : 0;
        }
        if (!on_node || (axis != MeshAxis::pipeline && place.pipeline != here.pipeline)) continue;
        std::set<int> group;
        for (int other = 0; other < mesh.ranks(); ++other) {
          if (one_group(place, place_of_rank(other, mesh), axis)) group.insert(other);
        }
        alike.insert(group);
      }
      const Communication sum{.axis = axis, .count = 10};
      const Traffic traffic = traffic_of(sum, MeshRank(mesh, own), nodes);
      CHECK(traffic.ranks == in_group);
      CHECK(traffic.ranks_per_node == beside);
      CHECK(traffic.within_node() == (beside == in_group));
      CHECK(traffic.alike == static_cast<int>(alike.size()));
      CHECK(traffic.bytes == 40);
    }
  }
}

TEST_CASE("a message stays within a node where both stages lie on it") {
  const Mesh mesh{2, 4, 2};
  const Communication message{.kind = Communication::Kind::send, .axis = MeshAxis::pipeline, .peer = 1, .count = 5};
  const MeshRank first(mesh, 0);
  CHECK(traffic_of(message, first, {4}).within_node());   // ranks 0 and 2
  CHECK(!traffic_of(message, first, {2}).within_node());  // on nodes of two
  CHECK(traffic_of(message, first, {2}).ranks == 2);
  CHECK(bytes_sent(traffic_of(message, first, {2})) == 20);
}

TEST_CASE("neighbours lie on one node in groups that divide every host's ranks") {
  CHECK(ranks_per_node({"a", "a", "b", "b"}) == 2);
  CHECK(ranks_per_node({"a", "a", "a", "a", "b", "b"}) == 2);
  CHECK(ranks_per_node({"a", "a", "a", "b", "b"}) == 1);
  CHECK(ranks_per_node({"a", "b", "a", "b"}) == 1);
  CHECK(ranks_per_node({"a", "a", "a"}) == 3);
}

}  // namespace trainctl::traffic_test
