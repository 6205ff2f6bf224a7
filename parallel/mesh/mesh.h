// The mesh: ranks as a grid data x pipeline x tensor, tensor innermost, so that its ranks are neighbours on one host.
#pragma once

namespace trainctl {

struct Mesh {
  int data = 1;      // replicas, each with its share of every batch
  int pipeline = 1;  // stages of consecutive layers
  int tensor = 1;    // parts of each layer

  struct Position {
    int data = 0;
    int pipeline = 0;
    int tensor = 0;

    bool operator==(const Position&) const = default;
  };

  int ranks() const { return data * pipeline * tensor; }
  Position position(int rank) const;
  int rank(const Position& position) const;
  bool operator==(const Mesh&) const = default;
};

}  // namespace trainctl
