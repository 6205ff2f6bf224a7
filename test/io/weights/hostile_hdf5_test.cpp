// Tests small HDF5 files whose objects share their content: the reader must not read more bytes than a file of that
// size can need.
#include <sys/resource.h>

#include <cstring>
#include <ctime>

#include "io/weights/hdf5_file.h"
#include "test/catch.h"
#include "test/io/weights/support.h"

namespace trainctl::test::hostile_hdf5_test {
namespace {

// A file to which fields are appended as the format's specification defines them.
class Image {
 public:
  Image& number(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(i < 8 ? value >> 8 * i : 0);
    return *this;
  }
  Image& bytes(const std::string& more) {
    text += more;
    return *this;
  }
  Image& fill(std::size_t multiple) {
    while (text.size() % multiple != 0) text += '\0';
    return *this;
  }
  std::uint64_t at() const { return text.size(); }
  void patch(std::uint64_t offset, std::uint64_t value) { std::memcpy(text.data() + offset, &value, 8); }

  std::string text;
};

// A file with a superblock of version 0. finish() writes the file's size and the address of the root's header into it.
Image begin() {
  Image image;
  image.bytes("\x89HDF\r\n\x1a\n").number(0, 5).number(8, 1).number(8, 1).number(0, 1).number(4, 2).number(16, 2);
  image.number(0, 4).number(0, 8).number(~std::uint64_t{0}, 8).number(0, 8).number(~std::uint64_t{0}, 8);
  image.number(0, 8).number(0, 8).number(0, 4).number(0, 20);
  return image;
}
std::string finish(Image image, std::uint64_t root) {
  image.patch(40, image.at());
  image.patch(64, root);
  return image.text;
}

// Appends a local heap of names, and the offset of each name to `offsets`. Returns the heap's address.
std::uint64_t heap_of(Image& image, const std::vector<std::string>& names, std::vector<std::uint64_t>& offsets) {
  Image segment;
  segment.number(0, 8);
  for (const std::string& name : names) {
    offsets.push_back(segment.at());
    segment.bytes(name).number(0, 1).fill(8);
  }
  const std::uint64_t heap = image.fill(8).at();
  image.bytes("HEAP").number(0, 4).number(segment.at(), 8).number(1, 8).number(heap + 32, 8).bytes(segment.text);
  return heap;
}

// Appends a tree with one node, whose members are all the object at `shared`. Returns its address.
std::uint64_t tree_of(Image& image, const std::vector<std::uint64_t>& offsets, std::uint64_t shared) {
  const std::uint64_t node = image.fill(8).at();
  image.bytes("SNOD").number(1, 2).number(offsets.size(), 2);
  for (const std::uint64_t offset : offsets) image.number(offset, 8).number(shared, 8).number(0, 24);
  const std::uint64_t tree = image.at();
  image.bytes("TREE").number(0, 1).number(0, 1).number(1, 2).number(~std::uint64_t{0}, 16);
  image.number(0, 8).number(node, 8).number(0, 8);
  return tree;
}

// Appends the header of a group, with `count` further messages `more` in front. Returns its address.
std::uint64_t group_header(Image& image, std::uint64_t tree, std::uint64_t heap, const std::string& more = "",
                           std::size_t count = 0) {
  const std::uint64_t header = image.fill(8).at();
  image.number(1, 2).number(count + 1, 2).number(1, 4).number(more.size() + 24, 4).number(0, 4).bytes(more);
  image.number(17, 2).number(16, 2).number(0, 4).number(tree, 8).number(heap, 8);
  return header;
}

// An attribute whose text is stored in the collection at `heap`.
std::string attribute_of(int number, std::uint64_t heap, std::uint64_t length) {
  Image body;
  std::string name = std::to_string(number);
  name.resize(8, '\0');
  body.number(1, 2).number(8, 2).number(16, 2).number(8, 2).bytes(name);
  body.number(0x19, 1).number(1, 3).number(16, 4).number(0, 8);  // variable length, text
  body.number(1, 1).number(0, 7);                                // a scalar
  body.number(length, 4).number(heap, 8).number(1, 4);
  Image message;
  message.number(12, 2).number(body.fill(8).at(), 2).number(0, 4).bytes(body.text);
  return message.text;
}

// A file whose root has `attributes` attributes that share one text of `length` bytes.
std::string shared_text(std::size_t attributes, std::size_t length) {
  Image image = begin();
  const std::uint64_t collection = image.fill(8).at();
  const std::size_t padded = (length + 7) / 8 * 8;
  image.bytes("GCOL").number(1, 4).number(16 + 16 + padded + 16, 8).number(1, 2).number(1, 2).number(0, 4);
  image.number(length, 8).bytes(std::string(padded, 'x')).number(0, 16);
  std::string more;
  for (std::size_t i = 0; i < attributes; ++i) more += attribute_of(static_cast<int>(i), collection, length);
  std::vector<std::uint64_t> offsets;
  const std::uint64_t heap = heap_of(image, {}, offsets), tree = tree_of(image, {}, 0);
  const std::uint64_t root = group_header(image, tree, heap, more, attributes);
  return finish(std::move(image), root);
}

// A file whose root has `members` members that share one header with `bytes` bytes of empty messages.
std::string shared_header(std::size_t members, std::size_t bytes) {
  Image image = begin();
  const std::uint64_t shared = image.fill(8).at();
  const std::size_t each = 4096, count = bytes / each;
  image.number(1, 2).number(count, 2).number(1, 4).number(count * (8 + each), 4).number(0, 4);
  for (std::size_t i = 0; i < count; ++i) image.number(0, 2).number(each, 2).number(0, 4).bytes(std::string(each, 'y'));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < members; ++i) names.push_back(std::to_string(i));
  std::vector<std::uint64_t> offsets;
  const std::uint64_t heap = heap_of(image, names, offsets), tree = tree_of(image, offsets, shared);
  const std::uint64_t root = group_header(image, tree, heap);
  return finish(std::move(image), root);
}

// A file of nested groups with long names. The two members of each group are the same next group, so there are 2^levels
// paths.
std::string shared_groups(int levels) {
  Image image = begin();
  std::vector<std::uint64_t> offsets;
  const std::vector<std::string> names = {std::string(4000, 'a'), std::string(4000, 'b')};
  const std::uint64_t heap = heap_of(image, names, offsets);
  std::uint64_t group = group_header(image, tree_of(image, {}, 0), heap);
  for (int level = 0; level < levels; ++level) {
    const std::uint64_t tree = tree_of(image, offsets, group);
    group = group_header(image, tree, heap);
  }
  return finish(std::move(image), group);
}

// Returns why the file is refused, "" if it is read. Checks the time and the memory that reading needs.
std::string refusal(const std::string& file) {
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  const std::clock_t start = std::clock();
  std::string why;
  try {
    const auto owner = std::make_shared<std::string>(file);
    const std::shared_ptr<const std::byte> data(owner, reinterpret_cast<const std::byte*>(owner->data()));
    const Hdf5File read(Bytes(data, std::ssize(*owner)), "hostile.h5");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    why = error.what();
  }
  getrusage(RUSAGE_SELF, &after);
  CHECK(after.ru_maxrss - before.ru_maxrss < 600'000);  // kB
  CHECK(std::clock() - start < 20 * CLOCKS_PER_SEC);    // CPU time
  return why;
}

}  // namespace

TEST_CASE("an HDF5 file whose attributes share one text is refused in bounded memory") {
  CHECK(refusal(shared_text(3, 1 << 20)).empty());
  const std::string file = shared_text(20'000, 1 << 20);  // 20 GB of text
  CHECK(file.size() < 4'000'000);
  CHECK(contains(refusal(file), "share headers and texts so often"));
}

TEST_CASE("an HDF5 file whose objects share a header is refused in bounded time") {
  CHECK(refusal(shared_header(3, 1 << 20)).empty());
  CHECK(contains(refusal(shared_header(20'000, 4 << 20)), "share headers and texts so often"));  // 80 GB of headers
}

TEST_CASE("an HDF5 file whose groups share groups is refused in bounded memory") {
  CHECK(refusal(shared_groups(3)).empty());
  CHECK(contains(refusal(shared_groups(20)), "damaged HDF5 file"));
}

}  // namespace trainctl::test::hostile_hdf5_test
