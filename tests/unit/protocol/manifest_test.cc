#include "protocol/chunks/manifest.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "protocol/limits.h"
#include "tests/unit/protocol/example_messages.h"

using namespace fedge;
using namespace fedge::protocol;

TEST_CASE("manifest: its id is the SHA-256 of the canonical bytes, as the openssl program computes it") {
  // Python builds the bytes of example_manifest() as manifest.cc describes them; then openssl dgst -sha256.
  CHECK(to_hex(example_manifest().id()) ==
        "cb4cc37db136d504e06fb073c12c503e0595616199f2ce4b3de566e47b398fe6");
  // The same with codec 4, and with raw size and levels at the end.
  Manifest compressed = example_manifest();
  compressed.codec = Codec::kQsgd;
  compressed.raw_size = 20'000;
  compressed.levels = 15;
  CHECK(to_hex(compressed.id()) == "11f9f4221fe680804f1075e7e07188141762e5b1c7aef20c6bc863c6bb0bafe5");
}

TEST_CASE("manifest: the id changes with every field") {
  const ObjectId id = example_manifest().id();
  const auto changed = [&](auto change) {
    Manifest manifest = example_manifest();
    change(manifest);
    return manifest.id() != id;
  };
  CHECK(changed([](Manifest& m) { m.layout[31] ^= 1; }));
  CHECK(changed([](Manifest& m) { m.coverage = Coverage::of({{10, 1010}, {2001, 4001}}); }));
  CHECK(changed([](Manifest& m) { m.codec = static_cast<Codec>(1); }));
  CHECK(changed([](Manifest& m) { m.payload_size += 1; }));
  CHECK(changed([](Manifest& m) { m.raw_size = 1; }));
  CHECK(changed([](Manifest& m) { m.levels = 1; }));
  CHECK(changed([](Manifest& m) { m.chunk_size += 4; }));
  CHECK(changed([](Manifest& m) { m.chunks[2][0] ^= 1; }));
  CHECK(changed([](Manifest& m) { m.chunks.pop_back(); }));
}

TEST_CASE("manifest: the last chunk is the rest, and chunks begin at known parameters") {
  const Manifest manifest = example_manifest();
  CHECK(manifest.chunk_count() == 3);
  CHECK(manifest.chunk_length(0) == 4096);
  CHECK(manifest.chunk_length(2) == 3808);
  CHECK(manifest.first_value(0) == 0);
  CHECK(manifest.first_value(2) == 2048);
}

TEST_CASE("manifest: chunk hashes are those of the bytes, by the published vector of a million a") {
  // FIPS 180-2, example B.3.
  const std::string payload(1'000'000, 'a');
  const Manifest manifest =
      make_manifest({}, Coverage::all(250'000), std::as_bytes(std::span(payload)), 1 << 20);
  REQUIRE(manifest.chunk_count() == 1);
  CHECK(to_hex(manifest.chunks[0]) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  CHECK(validate(manifest));
}

TEST_CASE("manifest: payloads around a chunk's length have the right number of chunks") {
  for (const std::size_t values : {1U, 1023U, 1024U, 1025U, 2048U}) {
    const std::vector<std::byte> payload(values * 4);
    const Manifest manifest = make_manifest({}, Coverage::all(values), payload, 4096);
    CHECK(manifest.chunk_count() == (values + 1023) / 1024);
    CHECK(validate(manifest));
    std::size_t total = 0;
    for (std::size_t i = 0; i < manifest.chunk_count(); ++i) total += manifest.chunk_length(i);
    CHECK(total == payload.size());
  }
}

TEST_CASE("manifest: a chunk of another content is corrupt, and the error has its number and both hashes") {
  std::vector<std::byte> payload(12'000);
  const Manifest manifest = make_manifest({}, Coverage::all(3000), payload, 4096);
  CHECK(verify_chunk(manifest, 1, std::span(payload).subspan(4096, 4096)));
  payload[5000] = std::byte{1};
  const auto damaged = std::span(payload).subspan(4096, 4096);
  const auto result = verify_chunk(manifest, 1, damaged);
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::kCorrupt);
  CHECK(result.error().message.find("chunk 1 ") != std::string::npos);
  CHECK(result.error().message.find(to_hex(manifest.chunks[1])) != std::string::npos);
  CHECK(result.error().message.find(to_hex(sha256(std::span<const std::byte>(damaged)))) !=
        std::string::npos);
  CHECK(verify_chunk(manifest, 1, damaged.first(4095)).error().code == ErrorCode::kCorrupt);
  CHECK(verify_chunk(manifest, 3, damaged).error().code == ErrorCode::kInvalid);
}
