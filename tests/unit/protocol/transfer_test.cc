// Both ends of chunk transfer without a socket: FetchSet requests, ChunkSender answers.
#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "protocol/chunks/fetch_set.h"
#include "protocol/chunks/sender.h"
#include "protocol/frame.h"

using namespace fedge;
using namespace fedge::protocol;

namespace {

constexpr std::uint32_t kTransferChunk = 4096;

struct Object final : ChunkSource, ChunkSink {
  Object(std::size_t chunks, unsigned seed) : bytes(chunks * kTransferChunk - 8), here(chunks) {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>((i + seed) % 251);
    manifest = make_manifest({}, Coverage::all(bytes.size() / 4), bytes, kTransferChunk);
  }
  Result<void> read_part(std::size_t chunk, std::size_t from, std::span<std::byte> out) override {
    std::memcpy(out.data(), bytes.data() + chunk * kTransferChunk + from, out.size());
    return {};
  }
  bool has(std::size_t chunk) const override { return here[chunk]; }
  Result<void> write(std::size_t chunk, std::span<const std::byte>) override {
    if (full) return Error{ErrorCode::kResource, "disk full"};
    CHECK_FALSE(here[chunk]);
    here[chunk] = true;
    order.push_back(chunk);
    return {};
  }
  std::span<const std::byte> chunk(std::size_t i) const {
    return std::span<const std::byte>(bytes).subspan(i * kTransferChunk, manifest.chunk_length(i));
  }

  std::vector<std::byte> bytes;
  Manifest manifest;
  std::vector<bool> here;
  std::vector<std::size_t> order;
  bool full = false;
};

std::shared_ptr<Object> object_of(std::size_t chunks, unsigned seed = 0) {
  return std::make_shared<Object>(chunks, seed);
}

constexpr ChunkAmount kWindow{8 * kTransferChunk, 6};

}  // namespace

TEST_CASE("fetch set: asks in ascending order, by quarters of the window, and for no more than the window") {
  FetchSet fetches({8 * kTransferChunk, 100});
  const auto object = object_of(20);
  REQUIRE(fetches.add(object->manifest, object));
  std::vector<ChunkRequest> requests;
  while (const auto request = fetches.next_request()) requests.push_back(*request);
  REQUIRE(requests.size() == 4);
  for (std::uint32_t i = 0; i < 4; ++i) CHECK(requests[i] == ChunkRequest{object->manifest.id(), 2 * i, 2});
  CHECK(fetches.outstanding().bytes == 8 * kTransferChunk);
}

TEST_CASE("fetch set: asks for no more chunks than are allowed at once, however small they are") {
  FetchSet fetches(kWindow);
  const auto object = object_of(20);
  REQUIRE(fetches.add(object->manifest, object));
  while (fetches.next_request()) {
  }
  CHECK(fetches.outstanding().chunks == 6);
}

TEST_CASE("fetch set: a chunk larger than the window is asked for alone") {
  FetchSet fetches({kTransferChunk / 2, 100});
  const auto object = object_of(3);
  REQUIRE(fetches.add(object->manifest, object));
  for (std::uint32_t i = 0; i < 3; ++i) {
    const auto request = fetches.next_request();
    REQUIRE(request);
    CHECK(*request == ChunkRequest{object->manifest.id(), i, 1});
    CHECK_FALSE(fetches.next_request());
    const auto finished = fetches.receive({object->manifest.id(), i}, object->chunk(i));
    CHECK(finished.has_value() == (i == 2));
  }
}

TEST_CASE("fetch set: two objects have their turns one after the other") {
  FetchSet fetches({16 * kTransferChunk, 100});
  const auto first = object_of(50, 1);
  const auto second = object_of(50, 2);
  REQUIRE(fetches.add(first->manifest, first));
  REQUIRE(fetches.add(second->manifest, second));
  std::size_t of_first = 0;
  std::size_t of_second = 0;
  while (const auto request = fetches.next_request())
    (request->object == first->manifest.id() ? of_first : of_second) += request->count;
  CHECK(of_first == 8);
  CHECK(of_second == 8);
}

TEST_CASE("fetch set: chunks the sink has are not asked for, and a whole object is not a fetch") {
  FetchSet fetches(kWindow);
  const auto object = object_of(5);
  object->here = {true, false, true, true, false};
  REQUIRE(fetches.add(object->manifest, object));
  CHECK(*fetches.next_request() == ChunkRequest{object->manifest.id(), 1, 1});
  CHECK(*fetches.next_request() == ChunkRequest{object->manifest.id(), 4, 1});
  CHECK_FALSE(fetches.next_request());
  const auto whole = object_of(2, 7);
  whole->here = {true, true};
  const auto added = fetches.add(whole->manifest, whole);
  REQUIRE(added);
  CHECK(*added);
}

TEST_CASE("fetch set: a chunk nobody asked for, or that has come already, is refused before its bytes") {
  FetchSet fetches(kWindow);
  const auto object = object_of(5);
  const ObjectId id = object->manifest.id();
  CHECK_FALSE(fetches.expected_length({id, 0}));
  REQUIRE(fetches.add(object->manifest, object));
  CHECK_FALSE(fetches.expected_length({id, 0}));
  while (fetches.next_request()) {
  }
  CHECK(*fetches.expected_length({id, 0}) == kTransferChunk);
  CHECK(*fetches.expected_length({id, 4}) == kTransferChunk - 8);
  CHECK_FALSE(fetches.expected_length({id, 5}));
  fetches.receive({id, 0}, object->chunk(0));
  CHECK_FALSE(fetches.expected_length({id, 0}));
}

TEST_CASE(
    "fetch set: a chunk with a wrong hash ends the fetch, never reaches the sink, and names its number") {
  FetchSet fetches(kWindow);
  const auto object = object_of(5);
  const ObjectId id = object->manifest.id();
  REQUIRE(fetches.add(object->manifest, object));
  while (fetches.next_request()) {
  }
  const auto finished = fetches.receive({id, 2}, object->chunk(1));
  REQUIRE(finished);
  CHECK(finished->outcome.error().code == ErrorCode::kCorrupt);
  CHECK(finished->outcome.error().message.find("chunk 2 ") != std::string::npos);
  CHECK(object->order.empty());
  // Chunks in transit still arrive and are discarded.
  for (const std::uint32_t i : {0U, 1U, 3U, 4U}) {
    REQUIRE(fetches.expected_length({id, i}));
    CHECK_FALSE(fetches.receive({id, i}, object->chunk(i)));
  }
  CHECK(fetches.outstanding().bytes == 0);
  CHECK(object->order.empty());
}

TEST_CASE("fetch set: an error of the sink ends the fetch as it is") {
  FetchSet fetches(kWindow);
  const auto object = object_of(5);
  REQUIRE(fetches.add(object->manifest, object));
  REQUIRE(fetches.next_request());
  object->full = true;
  const auto finished = fetches.receive({object->manifest.id(), 0}, object->chunk(0));
  REQUIRE(finished);
  CHECK(finished->outcome.error().message == "disk full");
}

TEST_CASE(
    "fetch set: a cancelled fetch keeps its credit until its chunks have come, a new one takes them over") {
  FetchSet fetches({4 * kTransferChunk, 4});
  const auto object = object_of(6);
  const ObjectId id = object->manifest.id();
  REQUIRE(fetches.add(object->manifest, object));
  CHECK_FALSE(fetches.add(object->manifest, object));
  while (fetches.next_request()) {
  }
  fetches.cancel(id);
  CHECK(fetches.outstanding().chunks == 4);
  CHECK_FALSE(fetches.receive({id, 0}, object->chunk(0)));
  CHECK(object->order.empty());
  REQUIRE(fetches.add(object->manifest, object));
  CHECK(*fetches.next_request() == ChunkRequest{id, 0, 1});
  for (const std::uint32_t i : {1U, 2U, 3U, 0U}) CHECK_FALSE(fetches.receive({id, i}, object->chunk(i)));
  CHECK(*fetches.next_request() == ChunkRequest{id, 4, 1});
  CHECK(*fetches.next_request() == ChunkRequest{id, 5, 1});
  CHECK_FALSE(fetches.receive({id, 4}, object->chunk(4)));
  const auto finished = fetches.receive({id, 5}, object->chunk(5));
  REQUIRE(finished);
  CHECK(finished->outcome);
  CHECK(object->order == std::vector<std::size_t>{1, 2, 3, 0, 4, 5});
}

TEST_CASE(
    "fetch set: a refusal ends the fetch with the peer's code, one of chunks not under way is a fault") {
  FetchSet fetches(kWindow);
  const auto object = object_of(6);
  const ObjectId id = object->manifest.id();
  const Error gone{ErrorCode::kNotFound, "not here"};
  CHECK_FALSE(fetches.refuse({id, 0, 1, gone}));
  REQUIRE(fetches.add(object->manifest, object));
  while (fetches.next_request()) {
  }
  CHECK_FALSE(fetches.refuse({id, 5, 2, gone}));
  FetchSet other(kWindow);
  REQUIRE(other.add(object->manifest, object));
  while (other.next_request()) {
  }
  const auto finished = other.refuse({id, 0, 6, gone});
  REQUIRE(finished);
  REQUIRE(*finished);
  CHECK((*finished)->outcome.error().code == ErrorCode::kNotFound);
  CHECK(other.outstanding().chunks == 0);
}

TEST_CASE("chunk sender: hands out what was asked for, in that order") {
  ChunkSender sender(kWindow);
  const auto object = object_of(6);
  const ObjectId id = object->manifest.id();
  sender.serve(object->manifest, object);
  CHECK_FALSE(sender.next());
  REQUIRE_FALSE(*sender.request({id, 4, 2}));
  REQUIRE_FALSE(*sender.request({id, 0, 1}));
  std::vector<std::pair<std::uint32_t, std::size_t>> sent;
  while (const auto next = sender.next()) {
    const auto& due = std::get<ChunkSender::Due>(*next);
    sent.emplace_back(due.chunk.index, due.length);
  }
  CHECK(sent == std::vector<std::pair<std::uint32_t, std::size_t>>{
                    {4, kTransferChunk}, {5, kTransferChunk - 8}, {0, kTransferChunk}});
  CHECK(sender.pending().bytes == 0);
}

TEST_CASE("chunk sender: an object that is not served is refused, chunks that do not exist end the link") {
  ChunkSender sender(kWindow);
  const auto object = object_of(6);
  const ObjectId id = object->manifest.id();
  const auto unknown = sender.request({id, 2, 3});
  REQUIRE(unknown);
  REQUIRE(*unknown);
  CHECK((*unknown)->first == 2);
  CHECK((*unknown)->count == 3);
  CHECK((*unknown)->error.code == ErrorCode::kNotFound);
  sender.serve(object->manifest, object);
  CHECK_FALSE(sender.request({id, 6, 1}));
  CHECK_FALSE(sender.request({id, 5, 2}));
  CHECK_FALSE(sender.request({id, 0xffffffff, 2}));
  CHECK(sender.request({id, 5, 1}));
}

TEST_CASE("chunk sender: more than the credit ends the link, one chunk alone is always allowed") {
  const auto object = object_of(20);
  const ObjectId id = object->manifest.id();
  ChunkSender by_bytes({4 * kTransferChunk, 100});
  by_bytes.serve(object->manifest, object);
  REQUIRE(by_bytes.request({id, 0, 4}));
  CHECK(by_bytes.request({id, 4, 1}).error().code == ErrorCode::kResource);
  ChunkSender by_count({400 * kTransferChunk, 4});
  by_count.serve(object->manifest, object);
  CHECK(by_count.request({id, 0, 5}).error().code == ErrorCode::kResource);
  ChunkSender tiny({kTransferChunk / 4, 1});
  tiny.serve(object->manifest, object);
  CHECK(tiny.request({id, 0, 1}));
  CHECK_FALSE(tiny.request({id, 1, 1}));
}

TEST_CASE("chunk sender: what is no longer served, or cannot be read, is refused to the end of its request") {
  ChunkSender sender(kWindow);
  const auto object = object_of(6);
  const ObjectId id = object->manifest.id();
  sender.serve(object->manifest, object);
  REQUIRE(sender.request({id, 0, 3}));
  REQUIRE(sender.request({id, 3, 3}));
  const auto due = std::get<ChunkSender::Due>(*sender.next());
  const ChunkRefused broken = sender.give_up(due, {ErrorCode::kUnavailable, "disk error"});
  CHECK(broken.first == 0);
  CHECK(broken.count == 3);
  sender.stop_serving(id);
  const auto refused = std::get<ChunkRefused>(*sender.next());
  CHECK(refused.first == 3);
  CHECK(refused.count == 3);
  CHECK_FALSE(sender.next());
  CHECK(sender.pending().chunks == 0);
}

TEST_CASE("chunk messages: each comes back from the wire, with the two headers of its frame") {
  const ObjectId id = sha256("object");
  const std::string request = encode_frame(ChunkRequest{id, 3, 4});
  const auto header = [](const std::string& frame) {
    return std::as_bytes(std::span(frame)).subspan(kFrameHeaderSize);
  };
  const auto fixed = [](const std::string& frame) {
    return *parse_frame_header(std::as_bytes(std::span(frame)).first<kFrameHeaderSize>(), {});
  };
  CHECK(*decode_chunk_request(header(request)) == ChunkRequest{id, 3, 4});
  CHECK(fixed(request).type == MessageType::kChunkRequest);
  const std::string chunk = encode_frame(Chunk{id, 7}, 1000);
  CHECK(*decode_chunk(header(chunk)) == Chunk{id, 7});
  CHECK(fixed(chunk) ==
        FrameHeader{MessageType::kChunk, static_cast<std::uint32_t>(chunk.size() - 16), 1000});
  const std::string refused = encode_frame(ChunkRefused{id, 1, 2, {ErrorCode::kCorrupt, "bad"}});
  const auto back = decode_chunk_refused(header(refused));
  REQUIRE(back);
  CHECK(back->first == 1);
  CHECK(back->count == 2);
  CHECK(back->error.code == ErrorCode::kCorrupt);
  CHECK(back->error.message == "bad");
}

TEST_CASE("chunk messages: ranges that are none, short hashes and cut bytes are refused") {
  const ObjectId id = sha256("object");
  for (const ChunkRequest& bad : {ChunkRequest{id, 0, 0}, ChunkRequest{id, 30'000, 1},
                                  ChunkRequest{id, 0xffffffff, 2}, ChunkRequest{id, 1, 0xffffffff}}) {
    const std::string frame = encode_frame(bad);
    CHECK_FALSE(decode_chunk_request(std::as_bytes(std::span(frame)).subspan(kFrameHeaderSize)));
  }
  const std::string frame = encode_frame(Chunk{id, 1}, 1);
  const auto header = std::as_bytes(std::span(frame)).subspan(kFrameHeaderSize);
  for (std::size_t size = 0; size < header.size(); ++size) {
    const auto cut = decode_chunk(header.first(size));
    if (cut) CHECK(cut->index == 0);
  }
  const std::string far = encode_frame(Chunk{id, 30'000}, 1);
  CHECK_FALSE(decode_chunk(std::as_bytes(std::span(far)).subspan(kFrameHeaderSize)));
}
