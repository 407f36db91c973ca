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

namespace fedge::protocol {
namespace {

constexpr std::uint32_t kKeptChunk = 4096;
constexpr std::uint64_t kPage = 4096;  // a file's first page, before the payload

std::vector<std::byte> bytes_of(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>((i * 31 + seed * 7 + i / 256) & 0xff);
  return bytes;
}

Manifest described(std::span<const std::byte> bytes) {
  return make_manifest({}, Coverage::all(bytes.size() / 4), bytes, kKeptChunk);
}

Result<bool> read_stored(const test::TemporaryDirectory& place, const Manifest& manifest,
                         const StoredFiles::Take& take) {
  FEDGE_TRY(files, StoredFiles::list(place.path()));
  return files.read(manifest, take);
}

auto filling(const std::vector<std::byte>& bytes) {
  return [&bytes](std::size_t chunk, std::span<std::byte> out) -> Result<void> {
    std::memcpy(out.data(), bytes.data() + chunk * kKeptChunk, out.size());
    return {};
  };
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
  const auto bytes = bytes_of(3 * kKeptChunk + 100, 1);
  const Manifest manifest = described(bytes);
  const auto read = [&](const Manifest& wanted, std::vector<std::byte>& out) {
    out.clear();
    return read_stored(scratch, wanted, [&](std::span<const std::byte> chunk) -> Result<void> {
      out.insert(out.end(), chunk.begin(), chunk.end());
      return {};
    });
  };
  std::vector<std::byte> got;
  CHECK_FALSE(*read(manifest, got));
  const auto other = bytes_of(2 * kKeptChunk, 9);
  REQUIRE(store->build(described(other), filling(other)));
  REQUIRE(store->build(manifest, filling(bytes)));
  REQUIRE(*read(manifest, got));
  CHECK(got == bytes);
  REQUIRE(*read(described(other), got));
  CHECK(got == other);

  // The object is removed, and its file is written over.
  store->remove(manifest.id());
  const auto next = bytes_of(3 * kKeptChunk + 100, 2);
  for (unsigned seed = 2; seed < 8; ++seed) {
    const auto again = bytes_of(3 * kKeptChunk + 100, seed);
    REQUIRE(store->build(described(again), filling(again)));
  }
  const auto gone = read(manifest, got);
  REQUIRE(gone);
  CHECK((!*gone || got == bytes));
  // An error of the reader is passed on.
  const auto full = read_stored(scratch, described(other), [](std::span<const std::byte>) {
    return Result<void>(Error{ErrorCode::kResource, "no space"});
  });
  REQUIRE_FALSE(full);
  CHECK(full.error().code == ErrorCode::kResource);
}

TEST_CASE("durable chunk store: a file whose name is right and whose bytes are not is not believed") {
  const test::TemporaryDirectory scratch;
  const auto bytes = bytes_of(3 * kKeptChunk, 1);
  const Manifest manifest = described(bytes);
  {
    const auto store = open_file_chunk_store(scratch.path(), {.max_bytes = 1 << 20, .durable = true});
    REQUIRE(store);
    REQUIRE((*store)->build(manifest, filling(bytes)));
  }
  const auto path = std::filesystem::directory_iterator(scratch.path())->path();
  const auto take = [](std::span<const std::byte>) { return Result<void>(); };
  REQUIRE(*read_stored(scratch, manifest, take));
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(kPage + 2 * kKeptChunk + 5));
    file.put('\x7f');
  }
  CHECK_FALSE(*read_stored(scratch, manifest, take));
  std::filesystem::resize_file(path, kPage + kKeptChunk);
  CHECK_FALSE(*read_stored(scratch, manifest, take));
  std::filesystem::remove(path);
  std::filesystem::create_symlink("/etc/passwd", path);
  CHECK_FALSE(read_stored(scratch, manifest, take));
}

}  // namespace fedge::protocol
