#include "protocol/chunks/chunk_store.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "protocol/limits.h"
#include "tests/support/no_more_descriptors.h"
#include "tests/unit/protocol/chunks/stored_bytes.h"

using namespace fedge;
using namespace fedge::protocol;

namespace {

struct Scratch {
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "fedge-store-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Scratch() { std::filesystem::remove_all(path); }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path))
      names.push_back(entry.path().filename());
    return names;
  }
  std::filesystem::path path;
};

std::span<const std::byte> chunk_of(const Manifest& manifest, std::span<const std::byte> bytes,
                                    std::size_t i) {
  return bytes.subspan(i * kStoredChunk, manifest.chunk_length(i));
}

std::vector<std::byte> content(StoredObject& object) {
  std::vector<std::byte> bytes(object.manifest().payload_size);
  for (std::size_t i = 0; i < object.manifest().chunk_count(); ++i)
    REQUIRE(object.read(i, std::span(bytes).subspan(i * kStoredChunk, object.manifest().chunk_length(i))));
  return bytes;
}

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

// Runs the same checks on both kinds of store.
void with_each_store(std::size_t max_bytes, const std::function<void(ChunkStore&)>& claims) {
  SUBCASE("in memory") { claims(*make_memory_chunk_store(max_bytes)); }
  SUBCASE("in files") {
    const Scratch scratch;
    auto store = open_file_chunk_store(scratch.path, {.max_bytes = max_bytes});
    REQUIRE(store);
    claims(**store);
  }
}

}  // namespace

TEST_CASE("chunk store: chunks written in any order make the whole object") {
  with_each_store(1 << 20, [](ChunkStore& store) {
    const auto bytes = some_bytes(5 * kStoredChunk + 100, 1);
    const Manifest manifest = manifest_of(bytes);
    const auto object = store.create(manifest);
    REQUIRE(object);
    for (const std::size_t i : {5U, 0U, 3U, 1U, 4U, 2U}) {
      CHECK_FALSE((*object)->complete());
      CHECK_FALSE((*object)->has(i));
      REQUIRE((*object)->write(i, chunk_of(manifest, bytes, i)));
      CHECK((*object)->has(i));
    }
    CHECK((*object)->complete());
    CHECK_FALSE((*object)->has(6));
    CHECK(content(**object) == bytes);
  });
}

TEST_CASE("chunk store: a chunk that has not come cannot be read, and writing one twice is no harm") {
  with_each_store(1 << 20, [](ChunkStore& store) {
    const auto bytes = some_bytes(2 * kStoredChunk, 2);
    const Manifest manifest = manifest_of(bytes);
    const auto object = store.create(manifest);
    REQUIRE(object);
    std::vector<std::byte> out(kStoredChunk);
    CHECK((*object)->read(1, out).error().code == ErrorCode::kNotFound);
    REQUIRE((*object)->write(1, chunk_of(manifest, bytes, 1)));
    REQUIRE((*object)->write(1, chunk_of(manifest, bytes, 1)));
    CHECK_FALSE((*object)->complete());
    CHECK((*object)->read(1, out));
  });
}

TEST_CASE("chunk store: create gives the object that is there already, remove forgets it but not its users") {
  with_each_store(1 << 20, [](ChunkStore& store) {
    const auto bytes = some_bytes(kStoredChunk, 3);
    const Manifest manifest = manifest_of(bytes);
    const auto first = store.create(manifest);
    REQUIRE(first);
    CHECK(*store.create(manifest) == *first);
    CHECK(store.find(manifest.id()) == *first);
    store.remove(manifest.id());
    CHECK(store.find(manifest.id()) == nullptr);
    CHECK(*store.create(manifest) != *first);
    REQUIRE((*first)->write(0, bytes));
    CHECK(content(**first) == bytes);
    store.remove(sha256("no such object"));
  });
}

TEST_CASE("chunk store: an object built from our own data has the manifest of those bytes") {
  with_each_store(1 << 20, [](ChunkStore& store) {
    const auto bytes = some_bytes(3 * kStoredChunk + 8, 4);
    Manifest shape = manifest_of(bytes);
    shape.chunks.clear();
    const auto object = store.build(shape, filler(bytes));
    REQUIRE(object);
    CHECK((*object)->manifest() == manifest_of(bytes));
    CHECK((*object)->complete());
    CHECK(content(**object) == bytes);
    CHECK(store.find(manifest_of(bytes).id()) == *object);
    CHECK(*store.build(shape, filler(bytes)) == *object);
  });
}

TEST_CASE("chunk store: an error while building leaves nothing behind") {
  with_each_store(4 * kStoredChunk, [](ChunkStore& store) {
    const auto bytes = some_bytes(4 * kStoredChunk, 5);
    const Manifest shape = manifest_of(bytes);
    const auto failed = store.build(shape, [&](std::size_t i, std::span<std::byte> out) -> Result<void> {
      if (i == 2) return invalid("no more");
      return filler(bytes)(i, out);
    });
    REQUIRE_FALSE(failed);
    CHECK(failed.error().message == "no more");
    CHECK(store.find(shape.id()) == nullptr);
    CHECK(store.build(shape, filler(bytes)));
  });
}

TEST_CASE("chunk store: beyond its bytes it takes no object, until one is let go") {
  with_each_store(5 * kStoredChunk, [](ChunkStore& store) {
    const auto one = some_bytes(2 * kStoredChunk, 6);
    const auto two = some_bytes(3 * kStoredChunk, 7);
    const auto three = some_bytes(4, 8);
    auto first = store.create(manifest_of(one));
    REQUIRE(first);
    REQUIRE(store.create(manifest_of(two)));
    const auto refused = store.create(manifest_of(three));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kResource);
    store.remove(manifest_of(one).id());
    CHECK_FALSE(store.create(manifest_of(three)));  // still in use
    first = Error{};
    CHECK(store.create(manifest_of(three)));
  });
}

TEST_CASE("chunk store: a manifest that does not fit together is refused") {
  with_each_store(1 << 20, [](ChunkStore& store) {
    Manifest manifest = manifest_of(some_bytes(kStoredChunk, 9));
    manifest.payload_size += 4;
    CHECK(store.create(manifest).error().code == ErrorCode::kInvalid);
    manifest.chunk_size = 1;
    CHECK(store.build(manifest, {}).error().code == ErrorCode::kInvalid);
  });
}

TEST_CASE("chunk store: an object outlives its store") {
  const auto bytes = some_bytes(2 * kStoredChunk, 10);
  const Scratch scratch;
  auto files = open_file_chunk_store(scratch.path, {.max_bytes = 1 << 20});
  REQUIRE(files);
  auto memory = make_memory_chunk_store(1 << 20);
  auto in_file = (*files)->build(manifest_of(bytes), filler(bytes));
  auto in_memory = memory->build(manifest_of(bytes), filler(bytes));
  files = Error{};
  memory.reset();
  CHECK(content(**in_file) == bytes);
  CHECK(content(**in_memory) == bytes);
  in_file = Error{};
  CHECK(scratch.files().empty());
}

TEST_CASE("file chunk store: leftovers of a killed process go, other files stay") {
  const Scratch scratch;
  std::ofstream(scratch.path / "7.chunks") << "left behind";
  std::ofstream(scratch.path / "notes.txt") << "not ours";
  const auto store = open_file_chunk_store(scratch.path, {.max_bytes = 1 << 20});
  REQUIRE(store);
  CHECK(scratch.files() == std::vector<std::string>{"notes.txt"});
}

TEST_CASE("file chunk store: files are private, and those of objects that are gone are written over") {
  const Scratch scratch;
  auto opened = open_file_chunk_store(scratch.path, {.max_bytes = 1 << 20});
  REQUIRE(opened);
  ChunkStore& store = **opened;
  const auto first = some_bytes(3 * kStoredChunk, 11);
  const auto second = some_bytes(2 * kStoredChunk, 12);
  REQUIRE(store.build(manifest_of(first), filler(first)));
  REQUIRE(scratch.files().size() == 1);
  const auto name = scratch.files()[0];
  struct stat info {};
  REQUIRE(::stat((scratch.path / name).c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  store.remove(manifest_of(first).id());
  const auto object = store.create(manifest_of(second));
  REQUIRE(object);
  CHECK(scratch.files() == std::vector<std::string>{name});
  // The file's former content does not count as a chunk.
  CHECK_FALSE((*object)->has(0));
  std::vector<std::byte> out(kStoredChunk);
  CHECK_FALSE((*object)->read(0, out));
}

TEST_CASE("file chunk store: spare files never make it exceed its bytes on disk") {
  const Scratch scratch;
  auto opened = open_file_chunk_store(scratch.path, {.max_bytes = 4 * kStoredChunk});
  REQUIRE(opened);
  const auto small = some_bytes(kStoredChunk, 13);
  const auto large = some_bytes(4 * kStoredChunk, 14);
  REQUIRE((*opened)->build(manifest_of(small), filler(small)));
  (*opened)->remove(manifest_of(small).id());
  REQUIRE((*opened)->build(manifest_of(large), filler(large)));
  std::uintmax_t total = 0;
  for (const auto& name : scratch.files()) total += std::filesystem::file_size(scratch.path / name);
  CHECK(total == 4 * kStoredChunk + kStoredPage);
}

TEST_CASE(
    "file chunk store: as many files as were needed at once are kept, and no descriptor for those that "
    "rest") {
  const Scratch scratch;
  auto opened = open_file_chunk_store(scratch.path, {.max_bytes = 1 << 20});
  REQUIRE(opened);
  ChunkStore& store = **opened;
  const std::size_t before = open_descriptors();
  const auto round = [&](unsigned seed) {
    std::vector<std::vector<std::byte>> updates;
    for (unsigned i = 0; i < 40; ++i) updates.push_back(some_bytes(2 * kStoredChunk, seed + i));
    for (const auto& bytes : updates) REQUIRE(store.build(manifest_of(bytes), filler(bytes)));
    CHECK(open_descriptors() == before + 40);
    for (const auto& bytes : updates) {
      const auto object = store.find(manifest_of(bytes).id());
      REQUIRE(object->sync());
      object->rest();
      CHECK(content(*object) == bytes);
    }
    CHECK(open_descriptors() == before);
    for (const auto& bytes : updates) store.remove(manifest_of(bytes).id());
    CHECK(open_descriptors() == before);
  };
  round(100);
  const auto files = scratch.files();
  CHECK(files.size() == 40);
  round(200);
  CHECK(scratch.files().size() == 40);
}

TEST_CASE(
    "file chunk store: spares that are too small give way one by one, those somebody removed are no loss") {
  const Scratch scratch;
  auto opened = open_file_chunk_store(scratch.path, {.max_bytes = 1 << 20});
  REQUIRE(opened);
  ChunkStore& store = **opened;
  for (unsigned i = 0; i < 3; ++i) REQUIRE(store.create(manifest_of(some_bytes(kStoredChunk, 60 + i))));
  for (unsigned i = 0; i < 3; ++i) store.remove(manifest_of(some_bytes(kStoredChunk, 60 + i)).id());
  REQUIRE(scratch.files().size() == 3);
  const auto large = some_bytes(8 * kStoredChunk, 70);
  REQUIRE(store.create(manifest_of(large)));
  CHECK(scratch.files().size() == 3);
  store.remove(manifest_of(large).id());
  for (const auto& name : scratch.files()) std::filesystem::remove(scratch.path / name);
  const auto again = some_bytes(2 * kStoredChunk, 71);
  REQUIRE(store.build(manifest_of(again), filler(again)));
  CHECK(content(*store.find(manifest_of(again).id())) == again);
  CHECK(scratch.files().size() == 1);
}

TEST_CASE("file chunk store: a directory that cannot be is an error with its name") {
  const Scratch scratch;
  std::ofstream(scratch.path / "file") << "in the way";
  const auto store = open_file_chunk_store(scratch.path / "file" / "chunks", {.max_bytes = 1 << 20});
  REQUIRE_FALSE(store);
  CHECK(store.error().message.find("file") != std::string::npos);
}

TEST_CASE(
    "file chunk store: a directory that disappears, and a file that may not grow, are errors with their "
    "names") {
  const Scratch scratch;
  auto opened = open_file_chunk_store(scratch.path / "chunks", {.max_bytes = 1 << 30});
  REQUIRE(opened);
  const auto bytes = some_bytes(64 * kStoredChunk, 15);
  // A file size limit simulates a full disk without privileges.
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small{16 * kStoredChunk, before.rlim_max};
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const auto too_large = (*opened)->create(manifest_of(bytes));
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, old_handler);
  REQUIRE_FALSE(too_large);
  CHECK(too_large.error().message.find(".chunks") != std::string::npos);
  CHECK(std::filesystem::is_empty(scratch.path / "chunks"));
  std::filesystem::remove_all(scratch.path / "chunks");
  const auto gone = (*opened)->create(manifest_of(bytes));
  REQUIRE_FALSE(gone);
  CHECK(gone.error().code == ErrorCode::kNotFound);
  CHECK(gone.error().message.find((scratch.path / "chunks").string()) != std::string::npos);
}

namespace {

std::unique_ptr<ChunkStore> open_durable(const std::filesystem::path& directory,
                                         std::size_t max_bytes = 1 << 20) {
  auto opened = open_file_chunk_store(directory, {.max_bytes = max_bytes, .durable = true});
  REQUIRE(opened);
  return std::move(*opened);
}

void flip_byte(const std::filesystem::path& path, std::uint64_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(byte);
}

}  // namespace

TEST_CASE("durable chunk store: a later process takes up whole and half objects, chunk by chunk") {
  const Scratch scratch;
  const auto whole = some_bytes(3 * kStoredChunk + 20, 20);
  const auto half = some_bytes(4 * kStoredChunk, 21);
  {
    const auto store = open_durable(scratch.path);
    REQUIRE((*store->build(manifest_of(whole), filler(whole)))->sync());
    const auto object = store->create(manifest_of(half));
    REQUIRE(object);
    REQUIRE((*object)->write(2, chunk_of(manifest_of(half), half, 2)));
  }
  const auto store = open_durable(scratch.path);
  CHECK(store->find(manifest_of(whole).id()) == nullptr);
  const auto again = store->create(manifest_of(whole));
  REQUIRE(again);
  CHECK(content(**again) == whole);
  const auto rest = store->create(manifest_of(half));
  REQUIRE(rest);
  for (const std::size_t i : {0U, 1U, 3U}) CHECK_FALSE((*rest)->has(i));
  CHECK((*rest)->has(2));
  CHECK(scratch.files().size() == 2);
}

TEST_CASE("N2 row 9, durable chunk store: a chunk whose bytes have changed on the disk is not there") {
  const auto bytes = some_bytes(3 * kStoredChunk, 22);
  for (const std::uint64_t offset :
       {std::uint64_t{0}, kStoredPage + kStoredChunk - 1, kStoredPage + kStoredChunk}) {
    const Scratch scratch;
    REQUIRE(open_durable(scratch.path)->build(manifest_of(bytes), filler(bytes)));
    const auto name = scratch.files().at(0);
    flip_byte(scratch.path / name, kStoredPage + offset);
    const auto store = open_durable(scratch.path);
    const auto object = store->create(manifest_of(bytes));
    REQUIRE(object);
    for (std::size_t i = 0; i < 3; ++i) CHECK((*object)->has(i) == (i != offset / kStoredChunk));
  }
}

TEST_CASE("N2 row 8, durable chunk store: a file cut short at any page is never taken for what it was") {
  const auto bytes = some_bytes(3 * kStoredChunk, 23);
  for (std::uintmax_t length = 0; length < kStoredPage + 3 * kStoredChunk; length += 1024) {
    const Scratch scratch;
    REQUIRE(open_durable(scratch.path)->build(manifest_of(bytes), filler(bytes)));
    std::filesystem::resize_file(scratch.path / scratch.files().at(0), length);
    const auto store = open_durable(scratch.path);
    const auto object = store->create(manifest_of(bytes));
    REQUIRE(object);
    CHECK_FALSE((*object)->complete());
    for (std::size_t i = 0; i < 3; ++i) REQUIRE((*object)->write(i, chunk_of(manifest_of(bytes), bytes, i)));
    CHECK(content(**object) == bytes);
  }
}

// A process that is killed and started again builds the same object again. A later one may be killed while it
// writes another object over one of the two files.
TEST_CASE("N1 row 1, durable chunk store: of two files with an object's name, the whole one is taken") {
  const auto bytes = some_bytes(3 * kStoredChunk, 26);
  for (const std::size_t damaged : {0U, 1U}) {
    const Scratch scratch;
    for (int process = 0; process < 2; ++process)
      REQUIRE(open_durable(scratch.path)->build(manifest_of(bytes), filler(bytes)));
    REQUIRE(scratch.files().size() == 2);
    flip_byte(scratch.path / scratch.files().at(damaged), kStoredPage + kStoredChunk);
    const auto store = open_durable(scratch.path);
    const auto object = store->create(manifest_of(bytes));
    REQUIRE(object);
    CHECK((*object)->complete());
    CHECK(content(**object) == bytes);
  }
}

TEST_CASE("durable chunk store: a file written over for another object is not believed for the first") {
  const Scratch scratch;
  const auto first = some_bytes(2 * kStoredChunk, 24);
  const auto second = some_bytes(2 * kStoredChunk, 25);
  {
    const auto store = open_durable(scratch.path);
    store->settle();
    REQUIRE(store->build(manifest_of(first), filler(first)));
    store->remove(manifest_of(first).id());
    REQUIRE(store->build(manifest_of(second), filler(second)));
  }
  CHECK(scratch.files().size() == 1);
  const auto store = open_durable(scratch.path);
  CHECK_FALSE((*store->create(manifest_of(first)))->has(0));
  CHECK(content(**store->create(manifest_of(second))) == second);
}

TEST_CASE(
    "durable chunk store: until it is settled it keeps what it let go of last and what it found, while there "
    "is "
    "room") {
  const Scratch scratch;
  std::vector<std::vector<std::byte>> objects;
  for (unsigned i = 0; i < 12; ++i) objects.push_back(some_bytes(kStoredChunk, 30 + i));
  const auto use = [&](ChunkStore& store, std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      REQUIRE(store.build(manifest_of(objects[i]), filler(objects[i])));
      store.remove(manifest_of(objects[i]).id());
    }
  };
  const auto holds = [&](ChunkStore& store, std::size_t object) {
    const bool whole = (*store.create(manifest_of(objects[object])))->complete();
    store.remove(manifest_of(objects[object]).id());
    return whole;
  };
  {
    const auto before = open_durable(scratch.path, 10 * kStoredChunk);
    for (std::size_t i = 0; i < 4; ++i) REQUIRE(before->build(manifest_of(objects[i]), filler(objects[i])));
  }
  {
    const auto store = open_durable(scratch.path, 10 * kStoredChunk);
    use(*store, 4, 12);
    CHECK(scratch.files().size() == 7);  // four from before, the last two, and one to be reused
    for (const unsigned kept : {0U, 3U, 10U, 11U}) CHECK(holds(*store, kept));
    CHECK_FALSE(holds(*store, 8));
  }
  // A full store replaces its oldest objects.
  const auto store = open_durable(scratch.path, 7 * kStoredChunk);
  use(*store, 4, 6);
  CHECK(scratch.files().size() == 7);
  CHECK(holds(*store, 5));
  store->settle();
  const auto last = some_bytes(kStoredChunk, 50);
  CHECK_FALSE((*store->create(manifest_of(last)))->has(0));
  CHECK(scratch.files().size() == 7);
}

TEST_CASE("N1, durable chunk store: whatever it holds when it is closed is there for a later process") {
  const Scratch scratch;
  std::vector<std::vector<std::byte>> objects;
  for (unsigned i = 0; i < 40; ++i) objects.push_back(some_bytes(2 * kStoredChunk, 60 + i));
  std::shared_ptr<StoredObject> outlives;
  {
    const auto store = open_durable(scratch.path);
    store->settle();
    for (const auto& bytes : objects) REQUIRE(store->build(manifest_of(bytes), filler(bytes)));
    outlives = store->find(manifest_of(objects[7]).id());
  }
  outlives.reset();
  const auto later = open_durable(scratch.path);
  for (const auto& bytes : objects) CHECK((*later->create(manifest_of(bytes)))->complete());
}

TEST_CASE("N1, durable chunk store: while all is wanted nothing gives way, not even beyond the bound") {
  const Scratch scratch;
  std::vector<std::vector<std::byte>> objects;
  for (unsigned i = 0; i < 10; ++i) objects.push_back(some_bytes(kStoredChunk, 30 + i));
  {
    const auto store = open_durable(scratch.path);
    for (const auto& bytes : objects) REQUIRE(store->build(manifest_of(bytes), filler(bytes)));
  }
  const auto store = *open_file_chunk_store(
      scratch.path, {.max_bytes = 10 * kStoredChunk, .durable = true, .all_wanted = true});
  const auto another = some_bytes(2 * kStoredChunk, 50);
  REQUIRE(store->build(manifest_of(another), filler(another)));
  for (const auto& bytes : objects) {
    const auto object = store->create(manifest_of(bytes));
    REQUIRE(object);
    CHECK((*object)->complete());
  }
}

TEST_CASE(
    "N6, durable chunk store: while all is wanted what it has let go of itself is written over, and goes") {
  const Scratch scratch;
  const FileStoreOptions all_wanted{.max_bytes = 100 * kStoredChunk, .durable = true, .all_wanted = true};
  const auto wanted = some_bytes(2 * kStoredChunk, 70);
  {
    const auto store = open_durable(scratch.path);
    REQUIRE(store->build(manifest_of(wanted), filler(wanted)));
  }
  {
    const auto store = *open_file_chunk_store(scratch.path, all_wanted);
    for (unsigned i = 0; i < 10; ++i) {
      const auto bytes = some_bytes(2 * kStoredChunk, 71 + i);
      const auto object = store->build(manifest_of(bytes), filler(bytes));
      REQUIRE(object);
      store->remove((*object)->manifest().id());
    }
    CHECK(scratch.files().size() == 2);
  }
  CHECK(scratch.files().size() == 1);  // a later process finds only the wanted object
  const auto store = *open_file_chunk_store(scratch.path, all_wanted);
  CHECK((*store->create(manifest_of(wanted)))->complete());
}

TEST_CASE("N6, file chunk store: a file that the disk does not give any more costs no object but its own") {
  const Scratch scratch;
  const auto store = *open_file_chunk_store(scratch.path, {.max_bytes = 100 * kStoredChunk});
  const auto bytes = some_bytes(2 * kStoredChunk, 90);
  auto first = store->build(manifest_of(bytes), filler(bytes));
  REQUIRE(first);
  const auto at = scratch.path / scratch.files().front();
  store->remove((*first)->manifest().id());
  first->reset();
  REQUIRE(scratch.files().size() == 1);
  std::filesystem::remove(at);
  std::filesystem::create_directory(at);
  CHECK(store->build(manifest_of(bytes), filler(bytes)));
}

TEST_CASE("N1, durable chunk store: a file that cannot be opened is an error with its name, and stays") {
  const Scratch scratch;
  const auto bytes = some_bytes(2 * kStoredChunk, 80);
  {
    const auto store = open_durable(scratch.path);
    REQUIRE(store->build(manifest_of(bytes), filler(bytes)));
  }
  const auto store = open_durable(scratch.path);
  {
    const test::NoMoreDescriptors none;
    const auto object = store->create(manifest_of(bytes));
    REQUIRE_FALSE(object);
    CHECK(object.error().code == ErrorCode::kResource);
    CHECK(object.error().message.find(".chunks") != std::string::npos);
  }
  CHECK((*store->create(manifest_of(bytes)))->complete());
}

TEST_CASE("A3 row 41, durable chunk store: links and strangers' files in its directory are not taken up") {
  const Scratch scratch;
  const Scratch elsewhere;
  std::ofstream(elsewhere.path / "canary") << "not to be touched";
  std::filesystem::create_symlink(elsewhere.path / "canary", scratch.path / "1.chunks");
  std::ofstream(scratch.path / "2.chunks") << "no header";
  std::ofstream(scratch.path / "notes.txt") << "not ours";
  open_durable(scratch.path);
  CHECK(scratch.files() == std::vector<std::string>{"notes.txt"});
  CHECK(std::filesystem::exists(elsewhere.path / "canary"));
}
