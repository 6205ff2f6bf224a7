// Compares the groups and nodes of a communication with a count over all ranks of the mesh.
#include "parallel/plan/traffic.h"

#include <random>
#include <set>

#include "test/catch.h"

namespace trainctl::traffic_test {
namespace {

struct Position3 {
  int data, pipeline, tensor;
};

// Position of a rank; tensor is the innermost axis.
Position3 position_of_rank(int rank, const Mesh& mesh) {
  return {rank / mesh.tensor / mesh.pipeline, rank / mesh.tensor % mesh.pipeline, rank % mesh.tensor};
}

bool one_group(const Position3& a, const Position3& b, MeshAxis axis) {
  return (axis == MeshAxis::data || a.data == b.data) && (axis == MeshAxis::pipeline || a.pipeline == b.pipeline) &&
         (axis == MeshAxis::tensor || a.tensor == b.tensor);
}

}  // namespace

TEST_CASE("traffic counts the ranks of a group on a node, and the similar groups on that node") {
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    const auto any = [&](int largest) { return 1 + static_cast<int>(random() % static_cast<unsigned>(largest)); };
    const Mesh mesh{.data = any(6), .pipeline = any(4), .tensor = any(4)};
    const Nodes nodes{any(10)};
    const int own = any(mesh.ranks()) - 1;
    for (const MeshAxis axis : all_mesh_axes) {
      const Position3 here = position_of_rank(own, mesh);
      int in_group = 0, on_own_node = 0;
      std::set<std::set<int>> alike;
      for (int rank = 0; rank < mesh.ranks(); ++rank) {
        const Position3 position = position_of_rank(rank, mesh);
        const bool on_node = rank / nodes.ranks_per_node == own / nodes.ranks_per_node;
        if (one_group(position, here, axis)) {
          ++in_group;
          on_own_node += on_node ? 1 : 0;
        }
        if (!on_node || (axis != MeshAxis::pipeline && position.pipeline != here.pipeline)) continue;
        std::set<int> group;
        for (int other = 0; other < mesh.ranks(); ++other) {
          if (one_group(position, position_of_rank(other, mesh), axis)) group.insert(other);
        }
        alike.insert(group);
      }
      const Communication sum{.axis = axis, .count = 10};
      const Traffic traffic = traffic_of(sum, MeshRank(mesh, own), nodes);
      CHECK(traffic.ranks == in_group);
      CHECK(traffic.ranks_per_node == on_own_node);
      CHECK(traffic.within_node() == (on_own_node == in_group));
      CHECK(traffic.alike == static_cast<int>(alike.size()));
      CHECK(traffic.bytes == 40);
    }
  }
}

TEST_CASE("a message stays within a node if both stages are on it") {
  const Mesh mesh{.data = 2, .pipeline = 4, .tensor = 2};
  const Communication message{.kind = Communication::Kind::send, .axis = MeshAxis::pipeline, .peer = 1, .count = 5};
  const MeshRank first(mesh, 0);
  CHECK(traffic_of(message, first, {4}).within_node());   // ranks 0 and 2
  CHECK(!traffic_of(message, first, {2}).within_node());  // on nodes of two
  CHECK(traffic_of(message, first, {2}).ranks == 2);
  CHECK(bytes_sent(traffic_of(message, first, {2})) == 20);
}

TEST_CASE("the ranks per node are the largest number that divides the ranks of every host") {
  CHECK(ranks_per_node({"a", "a", "b", "b"}) == 2);
  CHECK(ranks_per_node({"a", "a", "a", "a", "b", "b"}) == 2);
  CHECK(ranks_per_node({"a", "a", "a", "b", "b"}) == 1);
  CHECK(ranks_per_node({"a", "b", "a", "b"}) == 1);
  CHECK(ranks_per_node({"a", "a", "a"}) == 3);
}

}  // namespace trainctl::traffic_test
