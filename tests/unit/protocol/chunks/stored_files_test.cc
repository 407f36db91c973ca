// Objects of a durable chunk store that are copied while the store is in use.
#include "protocol/chunks/stored_files.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "protocol/chunks/chunk_store.h"

namespace fedge::protocol {
namespace {

constexpr std::uint32_t kPieceOfObject = 16 << 10;
constexpr std::uint64_t kPageBeforeObject = 4096;  // the header of an object's file

struct CopyPlace {
  std::filesystem::path path;
  CopyPlace() {
    std::string name = (std::filesystem::temp_directory_path() / "fedge-stored-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~CopyPlace() { std::filesystem::remove_all(path); }
  std::filesystem::path store() const { return path / "store"; }
  std::unique_ptr<ChunkStore> open(const std::filesystem::path& directory) const {
    auto opened =
        open_file_chunk_store(directory, {.max_bytes = 1 << 24, .durable = true, .all_wanted = true});
    REQUIRE(opened);
    return std::move(*opened);
  }
};

// An object of three pieces with this value in every byte.
std::shared_ptr<StoredObject> stored(ChunkStore& store, char value) {
  Manifest shape{.coverage = Coverage::all(10 << 10), .payload_size = 40 << 10, .chunk_size = kPieceOfObject};
  const auto object = store.build(shape, [&](std::size_t, std::span<std::byte> out) -> Result<void> {
    std::ranges::fill(out, static_cast<std::byte>(value));
    return {};
  });
  REQUIRE(object);
  return *object;
}

void change_byte(const std::filesystem::path& file, std::uint64_t at) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(static_cast<std::streamoff>(at));
  stream.put('!');
}

}  // namespace

TEST_CASE("stored files: a copied object is taken up by another store, with the same bytes") {
  const CopyPlace place;
  const auto store = place.open(place.store());
  const auto object = stored(*store, 'a');
  const auto other = place.path / "other";
  std::filesystem::create_directory(other);
  const auto files = StoredFiles::list(place.store());
  REQUIRE(files);
  CHECK(*files->copy(object->manifest(), other / "7.chunks"));
  const auto again = place.open(other)->create(object->manifest());
  REQUIRE(again);
  CHECK((*again)->complete());
  CHECK((std::filesystem::status(other / "7.chunks").permissions() & std::filesystem::perms::others_all) ==
        std::filesystem::perms::none);
  // No file is ever written over.
  CHECK_FALSE(files->copy(object->manifest(), other / "7.chunks"));
}

TEST_CASE("stored files: a file that is torn, overwritten or cut is not taken for the object it names") {
  for (const int fault : {0, 1, 2, 3}) {
    const CopyPlace place;
    const auto store = place.open(place.store());
    const auto object = stored(*store, 'a');
    const auto file = std::filesystem::directory_iterator(place.store())->path();
    if (fault == 0) change_byte(file, kPageBeforeObject);
    if (fault == 1) change_byte(file, kPageBeforeObject + (40 << 10) - 1);
    if (fault == 2) std::filesystem::resize_file(file, kPageBeforeObject + (40 << 10) - 1);
    if (fault == 3) std::filesystem::resize_file(file, 20);
    const auto files = StoredFiles::list(place.store());
    REQUIRE(files);
    const auto copied = files->copy(object->manifest(), place.path / "1.chunks");
    REQUIRE(copied);
    CAPTURE(fault);
    CHECK_FALSE(*copied);
    CHECK_FALSE(std::filesystem::exists(place.path / "1.chunks"));
  }
}

TEST_CASE("stored files: of two files with the object's name the whole one is copied, links are refused") {
  const CopyPlace place;
  const auto store = place.open(place.store());
  const auto object = stored(*store, 'a');
  const auto file = std::filesystem::directory_iterator(place.store())->path();
  for (const char* name : {"0.chunks", "9.chunks"})  // before and behind the whole one
    std::filesystem::copy_file(file, place.store() / name),
        change_byte(place.store() / name, kPageBeforeObject);
  const auto files = StoredFiles::list(place.store());
  REQUIRE(files);
  CHECK(*files->copy(object->manifest(), place.path / "1.chunks"));
  CHECK(read_file(place.path / "1.chunks", 1 << 20)->substr(kPageBeforeObject) == std::string(40 << 10, 'a'));
  CHECK(StoredFiles::list(place.path / "nowhere"));
  std::filesystem::create_symlink(file, place.store() / "5.chunks");
  const auto linked = StoredFiles::list(place.store());
  REQUIRE_FALSE(linked);
  CHECK(linked.error().message.find("5.chunks is a symbolic link") != std::string::npos);
}

}  // namespace fedge::protocol
