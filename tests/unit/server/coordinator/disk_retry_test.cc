#include "server/coordinator/detail/disk_retry.h"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

using namespace fedge;
using namespace fedge::server;

namespace {

constexpr Duration kSoon = std::chrono::milliseconds(2);
const Error kFull{ErrorCode::kResource, "no space left"};
const Error kBroken{ErrorCode::kCorrupt, "the disk is broken"};

struct Disk {
  Disk() {
    make([] {});
  }
  void make(std::function<void()> again) {
    retry = std::make_unique<DiskRetry>(
        io, [this](const Event& event) { reported.push_back(to_string(event)); },
        [this, again = std::move(again)] {
          ++attempts;
          again();
        },
        kSoon);
  }
  void run() {
    io.restart();
    io.run();
  }
  boost::asio::io_context io;
  std::vector<std::string> reported;
  int attempts = 0;
  std::unique_ptr<DiskRetry> retry;
};

}  // namespace

TEST_CASE("full disk: a failure and the success after it are reported once, whatever comes between") {
  Disk disk;
  CHECK_FALSE(disk.retry->stopped({}));
  CHECK(disk.reported.empty());
  CHECK(disk.retry->stopped(kFull));
  CHECK(disk.retry->stopped(kFull));
  CHECK_FALSE(disk.retry->stopped(kBroken));
  CHECK(disk.retry->is_full());
  CHECK(disk.reported == std::vector<std::string>{"disk.full reason=\"no space left\""});
  CHECK_FALSE(disk.retry->stopped({}));
  disk.retry->found_room();
  CHECK_FALSE(disk.retry->is_full());
  REQUIRE(disk.reported.size() == 2);
  CHECK(disk.reported.back() == "disk.space_available");
  CHECK(disk.retry->stopped(kFull));
  CHECK(disk.reported.size() == 3);
}

TEST_CASE("full disk: all work that was stopped is tried again together, once, until it succeeds") {
  Disk disk;
  for (int i = 0; i < 3; ++i) CHECK(disk.retry->stopped(kFull));
  disk.run();
  CHECK(disk.attempts == 1);
  disk.run();  // nothing was stopped again
  CHECK(disk.attempts == 1);
  disk.make([&] { disk.retry->stopped(disk.attempts < 5 ? Result<void>(kFull) : Result<void>()); });
  CHECK(disk.retry->stopped(kFull));
  disk.run();
  CHECK(disk.attempts == 5);
  CHECK(disk.reported.back() == "disk.space_available");
}

TEST_CASE("full disk: any other error, a cancelled retry and a destroyed one are not tried again") {
  Disk disk;
  CHECK_FALSE(disk.retry->stopped(kBroken));
  disk.run();
  CHECK(disk.retry->stopped(kFull));
  disk.retry->cancel();
  disk.run();
  CHECK(disk.attempts == 0);
  CHECK(disk.retry->stopped(kFull));  // after a cancellation as before
  disk.run();
  CHECK(disk.attempts == 1);
  CHECK(disk.retry->stopped(kFull));
  disk.retry.reset();
  disk.run();
  CHECK(disk.attempts == 1);
}

TEST_CASE("full disk: the attempt may destroy the retry that began it") {
  Disk disk;
  disk.make([&] { disk.retry.reset(); });
  CHECK(disk.retry->stopped(kFull));
  disk.run();
  CHECK(disk.attempts == 1);
  CHECK(disk.retry == nullptr);
}
