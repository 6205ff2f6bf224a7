// Compares extents with loops over every element of random tensors.
#include "core/tensor/extent.h"

#include <algorithm>
#include <random>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/tensor/extent_json.h"
#include "test/catch.h"

namespace trainctl::extent_test {
namespace {

std::int64_t below(std::mt19937& random, std::int64_t n) {
  return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
}

Shape random_shape(std::mt19937& random) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(below(random, 5)));
  for (std::int64_t& size : sizes) size = 1 + below(random, 5);
  return Shape(sizes);
}

// An extent, and the values from which it was made; holds() uses these values only.
struct Part {
  TensorExtent extent;
  std::vector<std::int64_t> offsets, sizes;  // offsets and sizes of the box or of the range
  bool flat = false;
  std::vector<std::int64_t> within = {};  // the elements of a range of a box

  bool holds(const Shape& shape, std::int64_t element) const {
    if (flat) return element >= offsets[0] && element < offsets[0] + sizes[0];
    if (!within.empty()) return std::find(within.begin(), within.end(), element) != within.end();
    for (std::size_t axis = offsets.size(); axis-- > 0;) {
      const std::int64_t size = shape[static_cast<std::int64_t>(axis)], at = element % size;
      element /= size;
      if (at < offsets[axis] || at >= offsets[axis] + sizes[axis]) return false;
    }
    return true;
  }
};

std::vector<std::int64_t> elements_of(const Part& part, const Shape& shape) {
  std::vector<std::int64_t> elements;
  for (std::int64_t i = 0; i < shape.count(); ++i) {
    if (part.holds(shape, i)) elements.push_back(i);
  }
  return elements;
}

// Returns a part with `count` of the elements that `outer` holds, beginning with element number `offset`.
Part range_of(const Part& outer, const Shape& shape, std::int64_t offset, std::int64_t count) {
  const std::vector<std::int64_t> elements = elements_of(outer, shape);
  Part part;
  part.extent = TensorExtent::range(shape, outer.extent, offset, count);
  part.within.assign(elements.begin() + offset, elements.begin() + offset + count);
  return part;
}

Part random_part(const Shape& shape, std::mt19937& random) {
  const auto cut = [&](std::int64_t size, Part& part) {
    const std::int64_t offset = random() % 3 ? below(random, size) : 0;
    part.offsets.push_back(offset);
    part.sizes.push_back(random() % 3 ? below(random, size - offset + 1) : size - offset);
  };
  Part part;
  part.flat = random() % 2;
  if (part.flat) {
    cut(shape.count(), part);
    part.extent = TensorExtent::range(shape, part.offsets[0], part.sizes[0]);
  } else {
    for (const std::int64_t size : shape.sizes()) cut(size, part);
    part.extent = TensorExtent::box(shape, part.offsets, part.sizes);
  }
  const std::int64_t count = part.extent.count(shape);
  if (random() % 3 == 0 && count > 0) {
    const std::int64_t offset = below(random, count);
    return range_of(part, shape, offset, 1 + below(random, count - offset));
  }
  return part;
}

View view_of(std::vector<std::int64_t>& values) {
  return {values.data(), DType::int64, static_cast<std::int64_t>(values.size())};
}

}  // namespace

TEST_CASE("elements that two extents have in common are copied, and no others") {
  std::mt19937 random(1);
  std::int64_t copied = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const Shape shape = random_shape(random);
    const Part from = random_part(shape, random), to = random_part(shape, random);
    CAPTURE(to_string(shape), to_string(from.extent), to_string(to.extent));
    std::vector<std::int64_t> source = elements_of(from, shape);  // each element's value is its number
    const std::vector<std::int64_t> wanted = elements_of(to, shape);
    REQUIRE(from.extent.count(shape) == static_cast<std::int64_t>(source.size()));
    REQUIRE(to.extent.count(shape) == static_cast<std::int64_t>(wanted.size()));
    std::vector<std::int64_t> expected, target(wanted.size(), -1);
    std::int64_t common = 0;
    for (const std::int64_t element : wanted) {
      const bool is_common = from.holds(shape, element);
      expected.push_back(is_common ? element : -1);
      common += is_common;
    }
    CHECK(copy_common(shape, from.extent, view_of(source), to.extent, view_of(target)) == common);
    CHECK(target == expected);
    copied += common;
  }
  CHECK(copied > 5000);
}

TEST_CASE("the first element that is not in exactly one extent is found") {
  std::mt19937 random(2);
  int whole = 0, gaps = 0, overlaps = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const Shape shape = random_shape(random);
    std::vector<Part> parts;
    if (random() % 2) {  // parts along one axis; sometimes one is missing
      const std::int64_t axis = shape.rank() == 0 ? 0 : below(random, shape.rank());
      const std::int64_t size = shape.rank() == 0 ? 1 : shape[axis];
      for (std::int64_t at = 0; at < size && shape.rank() > 0;) {
        Part part{{}, std::vector<std::int64_t>(static_cast<std::size_t>(shape.rank())), shape.sizes(), false};
        part.offsets[static_cast<std::size_t>(axis)] = at;
        part.sizes[static_cast<std::size_t>(axis)] = 1 + below(random, size - at);
        at += part.sizes[static_cast<std::size_t>(axis)];
        part.extent = TensorExtent::box(shape, part.offsets, part.sizes);
        const std::int64_t count = part.extent.count(shape), first = count > 0 ? below(random, count) : 0;
        if (first > 0 && random() % 2) {  // two ranks share it
          parts.push_back(range_of(part, shape, 0, first));
          part = range_of(part, shape, first, count - first);
        }
        if (random() % 8) parts.push_back(part);
      }
    }
    if (parts.empty() || random() % 4 == 0) {
      for (std::int64_t i = below(random, 3); i >= 0; --i) parts.push_back(random_part(shape, random));
    }
    std::shuffle(parts.begin(), parts.end(), random);
    std::vector<TensorExtent> extents;
    for (const Part& part : parts) extents.push_back(part.extent);

    std::int64_t first = 0;
    const auto holders = [&](std::int64_t element) {
      return std::count_if(parts.begin(), parts.end(), [&](const Part& p) { return p.holds(shape, element); });
    };
    while (first < shape.count() && holders(first) == 1) ++first;
    const auto problem = find_coverage_problem(shape, extents);
    REQUIRE(problem.has_value() == (first < shape.count()));
    whole += !problem;
    if (!problem) continue;
    CHECK(problem->element == first);
    CHECK(problem->in_none == (holders(first) == 0));
    (problem->in_none ? gaps : overlaps)++;
    if (problem->in_none) continue;
    CHECK(problem->first != problem->second);
    CHECK(parts.at(problem->first).holds(shape, first));
    CHECK(parts.at(problem->second).holds(shape, first));
  }
  CHECK(whole > 1000);
  CHECK(gaps > 1000);
  CHECK(overlaps > 1000);
}

TEST_CASE("a cover is chosen among replicas that have cut the same boxes at different elements") {
  std::mt19937 random(4);
  int uneven = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    Shape shape = random_shape(random);
    if (shape.rank() == 0) continue;
    const std::int64_t axis = below(random, shape.rank());
    std::vector<TensorExtent> boxes, extents;
    for (std::int64_t at = 0, size = 0; at < shape[axis]; at += size) {
      size = 1 + below(random, shape[axis] - at);
      std::vector<std::int64_t> offsets(static_cast<std::size_t>(shape.rank())), sizes = shape.sizes();
      offsets[static_cast<std::size_t>(axis)] = at;
      sizes[static_cast<std::size_t>(axis)] = size;
      boxes.push_back(TensorExtent::box(shape, offsets, sizes));
    }
    for (const TensorExtent& box : boxes) {
      for (std::int64_t replica = below(random, 3); replica >= 0; --replica) {
        const std::int64_t count = box.count(shape);
        for (std::int64_t at = 0, size = 0; at < count; at += size) {
          size = 1 + below(random, count - at);
          const TensorExtent extent = TensorExtent::range(shape, box, at, size);
          if (std::ranges::find(extents, extent) == extents.end()) extents.push_back(extent);
        }
      }
    }
    std::shuffle(extents.begin(), extents.end(), random);
    std::vector<bool> chosen;
    CAPTURE(trial, shape.sizes(), extents.size());
    REQUIRE_FALSE(choose_cover(shape, extents, chosen));
    std::vector<TensorExtent> cover;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      if (chosen[i]) cover.push_back(extents[i]);
    }
    CHECK_FALSE(find_coverage_problem(shape, cover));
    uneven += cover.size() < extents.size() ? 1 : 0;
  }
  CHECK(uneven > 1000);
  std::vector<bool> chosen;
  const std::vector<TensorExtent> gap = {TensorExtent::range({9}, 0, 4), TensorExtent::range({9}, 3, 6)};
  const auto problem = choose_cover({9}, gap, chosen);
  REQUIRE(problem);
  CHECK((problem->in_none && problem->element == 4));
}

TEST_CASE("extents that hold the same elements are equal") {
  CHECK(TensorExtent::box({3, 4}, {0, 0}, {3, 4}) == TensorExtent());
  CHECK(TensorExtent::range({3, 4}, 0, 12) == TensorExtent());
  CHECK(TensorExtent::box({}, {}, {}) == TensorExtent());
  CHECK(TensorExtent::box({5}, {1}, {3}) == TensorExtent::range({5}, 1, 3));
  CHECK_FALSE(TensorExtent::box({3, 4}, {0, 0}, {3, 2}) == TensorExtent::box({3, 4}, {0, 2}, {3, 2}));
  CHECK(TensorExtent::box({3, 4}, {0, 1}, {3, 2}).shape({3, 4}) == Shape{3, 2});
  CHECK(to_string(TensorExtent::box({3, 4}, {0, 1}, {3, 2})) == "[0:3, 1:3]");
  CHECK(to_string(TensorExtent::range({3, 4}, 5, 2)) == "elements [5:7]");
  CHECK_THROWS_AS(TensorExtent::box({3, 4}, {0, 1}, {3, 4}), Error);
  CHECK_THROWS_AS(TensorExtent::range({3, 4}, 6, 7), Error);

  // Ranges of the box with rows 0 to 2 and columns 1 and 2, which holds elements 1, 2, 5, 6, 9 and 10.
  const TensorExtent columns = TensorExtent::box({3, 4}, {0, 1}, {3, 2});
  const auto range = [&](std::int64_t offset, std::int64_t count) {
    return TensorExtent::range({3, 4}, columns, offset, count);
  };
  CHECK(range(0, 6) == columns);
  CHECK(range(2, 2) == TensorExtent::range({3, 4}, 5, 2));
  CHECK(range(2, 4) == TensorExtent::box({3, 4}, {1, 1}, {2, 2}));
  CHECK(to_string(range(1, 4)) == "elements [1:5] of [0:3, 1:3]");
  CHECK(to_string(range(3, 2)) == "elements [1:3] of [1:3, 1:3]");
  CHECK(range(3, 2).shape({3, 4}) == Shape{2});
  CHECK(TensorExtent::range({3, 4}, range(1, 4), 2, 2) == range(3, 2));
  CHECK(TensorExtent::range({3, 4}, TensorExtent::range({3, 4}, 5, 4), 1, 2) == TensorExtent::range({3, 4}, 6, 2));
  CHECK_THROWS_AS(range(3, 4), Error);
}

TEST_CASE("extents are the same after conversion to JSON and back, and JSON of extents outside the tensor is refused") {
  std::mt19937 random(3);
  for (int trial = 0; trial < 300; ++trial) {
    const Shape shape = random_shape(random);
    const TensorExtent extent = random_part(shape, random).extent;
    CHECK(extent_from_json(Json::parse(to_json(extent).dump()), shape) == extent);
  }
  for (const char* text :
       {R"({"offset":5,"count":8})", R"({"offset":-1,"count":2})", R"({"offset":13,"count":0})", R"({"offset":1})",
        R"({"offset":1.5,"count":2})", R"({"offset":18446744073709551615,"count":2})", R"({"offsets":[0,0]})",
        R"({"offsets":[0,0],"sizes":[3]})", R"({"offsets":[1,0],"sizes":[3,4]})", R"({"offsets":[0,0],"sizes":[3,-4]})",
        R"({"offsets":[0,0],"sizes":[3,"4"]})", R"({"offsets":[0,1],"sizes":[3,2],"range":{"offset":3,"count":4}})",
        R"({"offsets":[0,1],"sizes":[3,2],"range":{"offset":3}})", R"({"offsets":[0,1],"sizes":[3,2],"range":3})",
        R"({"offsets":0,"sizes":[3,4]})", "[]", "7", R"("whole")", "{}"}) {
    CAPTURE(text);
    CHECK_FALSE(extent_from_json(Json::parse(text), {3, 4}));
  }
}

}  // namespace trainctl::extent_test
