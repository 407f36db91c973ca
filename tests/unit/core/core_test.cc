#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <type_traits>

#include "core/aligned_buffer.h"
#include "core/crypto/sha256.h"
#include "core/event.h"
#include "core/ids.h"
#include "core/node.h"
#include "core/parameters.h"
#include "core/platform/files.h"
#include "core/platform/thread_pool.h"

using namespace fedge;

namespace {

struct TemporaryDirectory {
  std::filesystem::path path;
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "fedge-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path); }
};

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Comparable = requires(A a, B b) {
  a == b;
};

}  // namespace

TEST_CASE("strong types: ids and amounts do not mix with each other or with plain numbers") {
  static_assert(!Comparable<ClientId, RoundNumber>);
  static_assert(!Comparable<ClientId, std::uint32_t>);
  static_assert(!Addable<ClientId, ClientId>);
  static_assert(!Addable<Bytes, SampleCount>);
  static_assert(!Addable<Bytes, std::uint64_t>);
  static_assert(!std::is_convertible_v<std::uint32_t, ClientId>);
  static_assert(!std::is_convertible_v<ClientId, std::uint32_t>);
  CHECK((Bytes(3) + Bytes(4)).value() == 7);
  CHECK(next(RoundNumber(3)) == RoundNumber(4));
}

TEST_CASE("sha256: bytes in pieces have the digest of the whole") {
  const auto text = std::as_bytes(std::span(std::string_view("federated learning")));
  Sha256 hash;
  hash.add(text.first(1));
  hash.add(text.first(0));
  hash.add(text.subspan(1));
  CHECK(hash.finish() == sha256(text));
}

TEST_CASE("sha256: equals the published digests of \"abc\" and of nothing") {
  CHECK(to_hex(sha256("abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(to_hex(sha256("")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST_CASE("layout: tensors lie one after another and a parameter knows its name") {
  ParameterLayout layout;
  layout.add("dense1.weight", {3, 4}).add("dense1.bias", {3}, {.layer = 1});
  CHECK(layout.size() == 15);
  CHECK(layout.find("dense1.bias")->offset == 12);
  CHECK(layout.describe(11) == "dense1.weight[11]");
  CHECK(layout.describe(12) == "dense1.bias[0]");
  CHECK(layout.find("dense2.bias") == nullptr);
}

TEST_CASE("layout: anything that changes a tensor's meaning changes the hash") {
  const auto hash = [](const char* name, std::vector<std::size_t> shape, TensorOptions options = {}) {
    return ParameterLayout().add(name, std::move(shape), options).hash();
  };
  const Digest base = hash("w", {2, 3});
  CHECK(base == hash("w", {2, 3}));
  CHECK(base != hash("v", {2, 3}));
  CHECK(base != hash("w", {3, 2}));
  CHECK(base != hash("w", {2, 3}, {.layer = 1}));
  CHECK(base != hash("w", {2, 3}, {.trainable = false}));
  CHECK(base != hash("w", {2, 3}, {.order = TensorOrder::kRankMajor}));
}

TEST_CASE("buffers: small and large ones are aligned, start at zero, move and are copied by name") {
  for (const std::size_t size :
       {std::size_t{1}, kLargeAllocation - 1, kLargeAllocation, 3 * kLargeAllocation + 5}) {
    CAPTURE(size);
    for (int turn = 0; turn < 2; ++turn) {  // the second object may reuse the first one's memory
      AlignedBuffer<std::uint8_t> buffer(size);
      CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % kCacheLine == 0);
      CHECK(std::all_of(buffer.data(), buffer.data() + size, [](std::uint8_t byte) { return byte == 0; }));
      std::fill(buffer.data(), buffer.data() + size, std::uint8_t{7});
      AlignedBuffer<std::uint8_t> moved = std::move(buffer);
      const AlignedBuffer<std::uint8_t> copy = moved.clone();
      moved.data()[size - 1] = 8;
      CHECK(copy.data() != moved.data());
      CHECK(copy.size() == size);
      CHECK(copy.data()[size - 1] == 7);
    }
  }
}

TEST_CASE("buffers: with small pages, few bytes that are far apart take little memory") {
  constexpr std::size_t kSize = std::size_t{64} << 20;
  constexpr std::size_t kStep = std::size_t{2} << 20;
  AlignedBuffer<std::uint8_t> buffer(kSize, Pages::kSmall);
  for (std::size_t at = 0; at < kSize; at += kStep) buffer.data()[at] = 1;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident(kSize / page);
  REQUIRE(::mincore(buffer.data(), kSize, resident.data()) == 0);
  std::size_t used = 0;
  for (const unsigned char one : resident) used += one & 1U;
  CHECK(used == kSize / kStep);
}

TEST_CASE("parameters: storage is aligned to a cache line and starts at zero") {
  auto layout = std::make_shared<ParameterLayout>();
  layout->add("w", {33});
  ParameterVector vector(layout);
  CHECK(reinterpret_cast<std::uintptr_t>(vector.values().data()) % kCacheLine == 0);
  for (const float value : vector.values()) CHECK(value == 0.0F);
  vector.values()[5] = 2.0F;
  ParameterVector copy = vector.clone();
  copy.values()[5] = 3.0F;
  CHECK(vector.values()[5] == 2.0F);
}

TEST_CASE("model hash: is the SHA-256 of the values as little-endian float32") {
  const float values[] = {1.0F, -2.0F};
  // printf '\x00\x00\x80\x3f\x00\x00\x00\xc0' | sha256sum
  CHECK(to_hex(model_hash(values)) == "ee4ac73c2bd27756ab82780f27c73a7bc4d3f0bb6acb37e008bc27eccd7e588b");
}

TEST_CASE("event: a peer's text cannot forge a log line") {
  const Event event = Event{Severity::kInfo, "x", {}}
                          .with("n", std::int64_t{3})
                          .with("d", 0.5)
                          .with("text", std::string("a\"b\\c\nround.closed\x7f"));
  CHECK(to_string(event) == "x n=3 d=0.5 text=\"a\\\"b\\\\c\\x0around.closed\\x7f\"");
}

TEST_CASE("thread pool: every task runs exactly once, whatever the number of threads") {
  for (const std::size_t threads : {1U, 2U, 5U}) {
    ThreadPool pool(threads);
    CHECK(pool.width() == threads);
    for (const std::size_t tasks : {0U, 1U, 2U, 1000U}) {
      std::vector<std::atomic<int>> runs(tasks);
      pool.for_each(tasks, [&](std::size_t i) { ++runs[i]; });
      for (const auto& count : runs) CHECK(count == 1);
    }
  }
}

TEST_CASE("thread pool: an exception of a task reaches the caller, and the pool works on") {
  for (const std::size_t threads : {1U, 3U}) {
    ThreadPool pool(threads);
    for (int again = 0; again < 100; ++again)
      CHECK_THROWS_WITH_AS(pool.for_each(20, [](std::size_t) { throw std::runtime_error("task"); }), "task",
                           std::runtime_error);
    std::atomic<int> runs = 0;
    pool.for_each(20, [&](std::size_t) { ++runs; });
    CHECK(runs == 20);
  }
}

TEST_CASE("files: a replaced file has the new content, and nothing is left beside it") {
  const TemporaryDirectory directory;
  const auto path = directory.path / "a.txt";
  CHECK(write_file_atomic(path, "one"));
  CHECK(write_file_atomic(path, "two"));
  CHECK(*read_file(path, 100) == "two");
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path), {}) == 1);
}

TEST_CASE("files: errors name the file and tell not-there from too-large") {
  const TemporaryDirectory directory;
  const auto missing = read_file(directory.path / "nothing", 10);
  REQUIRE(!missing);
  CHECK(missing.error().code == ErrorCode::kNotFound);
  CHECK(missing.error().message.find("nothing: No such file") != std::string::npos);
  CHECK(write_file_atomic(directory.path / "big", "12345678901"));
  const auto big = read_file(directory.path / "big", 10);
  REQUIRE(!big);
  CHECK(big.error().code == ErrorCode::kResource);
  CHECK(!write_file_atomic(directory.path / "no" / "where", "x"));
}

TEST_CASE("directory lock: the second holder is refused until the first lets go") {
  const TemporaryDirectory directory;
  {
    const auto first = DirectoryLock::acquire(directory.path);
    REQUIRE(first);
    const auto second = DirectoryLock::acquire(directory.path);
    REQUIRE(!second);
    CHECK(second.error().code == ErrorCode::kUnavailable);
  }
  CHECK(DirectoryLock::acquire(directory.path));
}

TEST_CASE("a file that is replaced keeps its owner and mode, and a new one gets the mode that is asked for") {
  const TemporaryDirectory directory;
  const auto path = directory.path / "file";
  const auto info = [&] {
    struct stat status {};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    return status;
  };
  REQUIRE(write_file_atomic(path, "one", 0600));
  CHECK((info().st_mode & 07777) == 0600);
  REQUIRE(::chmod(path.c_str(), 0640) == 0);
  if (::geteuid() == 0) REQUIRE(::chown(path.c_str(), 12345, 54321) == 0);  // only root can give files away
  const auto before = info();
  REQUIRE(write_file_atomic(path, "two", 0600));
  CHECK(*read_file(path, 10) == "two");
  CHECK(info().st_mode == before.st_mode);
  CHECK(info().st_uid == before.st_uid);
  CHECK(info().st_gid == before.st_gid);
  const auto owned = check_owner(path);
  CHECK(owned.has_value() == (before.st_uid == ::geteuid()));
  CHECK(check_owner(directory.path / "absent"));
}
