#include "protocol/session/chunk_buffer.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <vector>

using fedge::protocol::ChunkBuffer;

TEST_CASE("chunk buffer: what one gives back the next one gets, if it is large enough, aligned for vectors") {
  auto first = ChunkBuffer::borrow(100'000);
  const auto* memory = first.span().data();
  CHECK(first.span().size() >= 100'000);
  CHECK(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0);
  first.give_back();
  CHECK(first.span().empty());
  first.give_back();  // no effect
  auto larger = ChunkBuffer::borrow(200'000);
  CHECK(larger.span().data() != memory);
  auto second = ChunkBuffer::borrow(50'000);
  CHECK(second.span().data() == memory);
}

TEST_CASE("chunk buffer: no two hold the same memory, moved or assigned") {
  std::vector<ChunkBuffer> held;
  for (int i = 0; i < 100; ++i) held.push_back(ChunkBuffer::borrow(4096));
  ChunkBuffer moved(std::move(held[0]));
  CHECK(held[0].span().empty());  // NOLINT: what is left of it
  held[0] = ChunkBuffer::borrow(4096);
  held[1] = ChunkBuffer::borrow(4096);  // returns its former buffer
  std::set<const std::byte*> distinct{moved.span().data()};
  for (const auto& buffer : held) distinct.insert(buffer.span().data());
  CHECK(distinct.size() == 101);
  held.clear();
}

TEST_CASE("A6: chunk buffers: a few are kept, the rest of what a thousand links needed at once goes") {
  std::vector<ChunkBuffer> held;
  std::set<const std::byte*> before;
  for (int i = 0; i < 64; ++i) {
    held.push_back(ChunkBuffer::borrow(9000 + static_cast<std::size_t>(i)));
    before.insert(held.back().span().data());
  }
  held.clear();
  std::size_t kept = 0;
  for (int i = 0; i < 64; ++i) {
    held.push_back(ChunkBuffer::borrow(1));
    if (held.back().span().size() >= 9000) ++kept;
  }
  CHECK(kept == 8);
}
