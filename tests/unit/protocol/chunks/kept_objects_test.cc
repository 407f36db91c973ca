// Objects of a durable chunk store, as others than the store read them.
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "protocol/chunks/chunk_store.h"
#include "protocol/chunks/stored_files.h"
#include "tests/support/tiny_dataset.h"
#include "tests/unit/protocol/chunks/stored_bytes.h"

namespace fedge::protocol {
namespace {

Result<bool> read_stored(const test::TemporaryDirectory& place, const Manifest& manifest,
                         const StoredFiles::Take& take) {
  FEDGE_TRY(files, StoredFiles::list(place.path()));
  return files.read(manifest, take);
}

}  // namespace

TEST_CASE("durable chunk store: others read an object while the store is in use, and never wrong bytes") {
  const test::TemporaryDirectory scratch;
  const auto open = [&] {
    auto store = open_file_chunk_store(scratch.path(), {.max_bytes = 1 << 20, .durable = true});
    REQUIRE(store);
    return std::move(*store);
  };
  const auto store = open();
  const auto bytes = some_bytes(3 * kStoredChunk + 100, 1);
  const Manifest manifest = manifest_of(bytes);
  const auto read = [&](const Manifest& wanted, std::vector<std::byte>& out) {
    out.clear();
    return read_stored(scratch, wanted, [&](std::span<const std::byte> chunk) -> Result<void> {
      out.insert(out.end(), chunk.begin(), chunk.end());
      return {};
    });
  };
  std::vector<std::byte> got;
  CHECK_FALSE(*read(manifest, got));
  const auto other = some_bytes(2 * kStoredChunk, 9);
  REQUIRE(store->build(manifest_of(other), filler(other)));
  REQUIRE(store->build(manifest, filler(bytes)));
  REQUIRE(*read(manifest, got));
  CHECK(got == bytes);
  REQUIRE(*read(manifest_of(other), got));
  CHECK(got == other);

  // The object is removed, and its file is written over.
  store->remove(manifest.id());
  const auto next = some_bytes(3 * kStoredChunk + 100, 2);
  for (unsigned seed = 2; seed < 8; ++seed) {
    const auto again = some_bytes(3 * kStoredChunk + 100, seed);
    REQUIRE(store->build(manifest_of(again), filler(again)));
  }
  const auto gone = read(manifest, got);
  REQUIRE(gone);
  CHECK((!*gone || got == bytes));
  // An error of the reader is passed on.
  const auto full = read_stored(scratch, manifest_of(other), [](std::span<const std::byte>) {
    return Result<void>(Error{ErrorCode::kResource, "no space"});
  });
  REQUIRE_FALSE(full);
  CHECK(full.error().code == ErrorCode::kResource);
}

TEST_CASE("durable chunk store: a file whose name is right and whose bytes are not is not believed") {
  const test::TemporaryDirectory scratch;
  const auto bytes = some_bytes(3 * kStoredChunk, 1);
  const Manifest manifest = manifest_of(bytes);
  {
    const auto store = open_file_chunk_store(scratch.path(), {.max_bytes = 1 << 20, .durable = true});
    REQUIRE(store);
    REQUIRE((*store)->build(manifest, filler(bytes)));
  }
  const auto path = std::filesystem::directory_iterator(scratch.path())->path();
  const auto take = [](std::span<const std::byte>) { return Result<void>(); };
  REQUIRE(*read_stored(scratch, manifest, take));
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(kStoredPage + 2 * kStoredChunk + 5));
    file.put('\x7f');
  }
  CHECK_FALSE(*read_stored(scratch, manifest, take));
  std::filesystem::resize_file(path, kStoredPage + kStoredChunk);
  CHECK_FALSE(*read_stored(scratch, manifest, take));
  std::filesystem::remove(path);
  std::filesystem::create_symlink("/etc/passwd", path);
  CHECK_FALSE(read_stored(scratch, manifest, take));
}

}  // namespace fedge::protocol
